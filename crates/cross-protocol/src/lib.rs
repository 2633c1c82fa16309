//! What every protocol edge shares.
