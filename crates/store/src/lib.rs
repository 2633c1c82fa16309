//! Where receipts, intents, budgets, tokens and revocations are kept.
