//! Socket files: taken over only when no process answers.

use super::*;

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chio-sock-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("chio.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn only_the_owner_can_open_the_socket_and_it_goes_with_its_listener() {
    let folder = Folder::new("mode");
    let (listener, file) = bind(&folder.socket()).await.unwrap();
    let mode = fs::metadata(folder.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(UnixStream::connect(folder.socket()).await.is_ok());
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing else lies around");
    drop((listener, file));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[tokio::test]
async fn a_socket_on_which_somebody_answers_is_left_alone() {
    let folder = Folder::new("busy");
    let _held = bind(&folder.socket()).await.unwrap();
    let refused = bind(&folder.socket()).await;
    assert!(matches!(refused, Err(ListenError::SocketInUse(path)) if path == folder.socket()));
    assert!(UnixStream::connect(folder.socket()).await.is_ok());
}

#[tokio::test]
async fn a_socket_on_which_nobody_answers_is_replaced() {
    let folder = Folder::new("stale");
    drop(std::os::unix::net::UnixListener::bind(folder.socket()).unwrap());
    assert!(folder.socket().exists());
    let _held = bind(&folder.socket()).await.unwrap();
    assert!(UnixStream::connect(folder.socket()).await.is_ok());
}

#[tokio::test]
async fn what_is_no_socket_is_left_alone() {
    let folder = Folder::new("file");
    fs::write(folder.socket(), "precious").unwrap();
    let refused = bind(&folder.socket()).await;
    assert!(matches!(refused, Err(ListenError::NotASocket(_))));
    assert_eq!(fs::read_to_string(folder.socket()).unwrap(), "precious");
}

#[tokio::test]
async fn the_file_of_a_successor_is_not_removed() {
    let folder = Folder::new("successor");
    let (listener, file) = bind(&folder.socket()).await.unwrap();
    fs::remove_file(folder.socket()).unwrap();
    let _successor = bind(&folder.socket()).await.unwrap();
    drop((listener, file));
    assert!(folder.socket().exists());
}
