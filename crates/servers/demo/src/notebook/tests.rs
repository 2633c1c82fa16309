//! Notes across openings, crashes and processes.

use std::fs;
use std::path::PathBuf;

use super::*;

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("chio-demo-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> Notebook {
        Notebook::open(Some(&self.0)).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.0.join(FILE)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn put(notebook: &Notebook, name: &str, text: &str) -> u64 {
    notebook.put(name.to_owned(), text.to_owned()).unwrap()
}

#[test]
fn each_put_is_a_line_and_is_there_after_opening_again() {
    let folder = Folder::new("again");
    assert_eq!(put(&folder.open(), "a", "1\n2"), 1);
    assert_eq!(put(&folder.open(), "a", "3"), 2);
    let notebook = folder.open();
    assert_eq!(notebook.get("a").unwrap(), "3");
    assert_eq!(notebook.counts().unwrap(), Counts { notes: 1, puts: 2 });
    assert_eq!(fs::read_to_string(folder.file()).unwrap().lines().count(), 2);
}

#[test]
fn two_that_share_a_file_see_each_others_notes() {
    let folder = Folder::new("shared");
    let (one, other) = (folder.open(), folder.open());
    put(&one, "a", "1");
    assert_eq!(other.get("a").unwrap(), "1");
    assert_eq!(put(&other, "b", "2"), 2);
    assert_eq!(one.get("b").unwrap(), "2");
}

#[test]
fn a_line_that_a_crash_left_unfinished_does_not_count() {
    let folder = Folder::new("torn");
    put(&folder.open(), "a", "1");
    let mut file = OpenOptions::new().append(true).open(folder.file()).unwrap();
    file.write_all(br#"{"name":"b","te"#).unwrap();
    let notebook = folder.open();
    assert_eq!(notebook.counts().unwrap(), Counts { notes: 1, puts: 1 });
    assert_eq!(put(&notebook, "c", "3"), 2);
    assert_eq!(folder.open().counts().unwrap(), Counts { notes: 2, puts: 2 });
}

#[test]
fn a_full_notebook_takes_no_new_names() {
    let notebook = Notebook::open(None).unwrap();
    for number in 0..MAX_NOTES {
        put(&notebook, &number.to_string(), "");
    }
    let refused = notebook.put("new".to_owned(), String::new());
    assert!(matches!(refused, Err(NoteError::Full)));
    put(&notebook, "0", "an old name");
}
