//! A file system in memory that logs all operations in order: writes, names, and syncs.
//!
//! The kernel passes everything through FUSE without write-back caching, so the log contains all
//! that any program does to its files, whatever system calls it uses.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

/// Inode number of the top directory.
pub const TOP: u64 = 1;
/// Cache timeout: the kernel caches nothing.
const AT_ONCE: Duration = Duration::ZERO;

/// A logged operation, or a test's note.
#[derive(Clone, Debug)]
pub enum Op {
    /// A file or directory was created.
    Create {
        directory: u64,
        name: OsString,
        file: u64,
        is_directory: bool,
    },
    /// A name moved.
    Rename {
        from: (u64, OsString),
        to: (u64, OsString),
    },
    /// A name was removed.
    Remove {
        directory: u64,
        name: OsString,
    },
    Length {
        file: u64,
        bytes: u64,
    },
    Write {
        file: u64,
        at: u64,
        data: Arc<[u8]>,
    },
    /// These bytes became zeros.
    Hole {
        file: u64,
        at: u64,
        bytes: u64,
    },
    /// Earlier changes of a file, or of the names in a directory, survive a power failure from here
    /// on.
    Sync(u64),
    /// A test's note.
    Note(u64),
}

struct Node {
    is_directory: bool,
    mode: u16,
    data: Vec<u8>,
    entries: BTreeMap<OsString, u64>,
    names: u32,
    uid: u32,
    gid: u32,
}

impl Node {
    fn new(is_directory: bool, mode: u32, request: Option<&Request>) -> Node {
        Node {
            is_directory,
            mode: (mode & 0o7777) as u16,
            data: Vec::new(),
            entries: BTreeMap::new(),
            names: 1,
            uid: request.map_or_else(|| rustix::process::geteuid().as_raw(), Request::uid),
            gid: request.map_or_else(|| rustix::process::getegid().as_raw(), Request::gid),
        }
    }
}

struct Tree {
    nodes: BTreeMap<u64, Node>,
    log: Vec<Op>,
    /// Whether operations are logged.
    records: bool,
}

impl Tree {
    fn log(&mut self, op: Op) {
        if self.records {
            self.log.push(op);
        }
    }

    fn node(&mut self, ino: INodeNo) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&ino.0).ok_or(Errno::ENOENT)
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Result<u64, Errno> {
        let parent = self.nodes.get(&parent.0).ok_or(Errno::ENOENT)?;
        parent.entries.get(name).copied().ok_or(Errno::ENOENT)
    }

    fn attributes(&self, file: u64) -> Result<FileAttr, Errno> {
        let node = self.nodes.get(&file).ok_or(Errno::ENOENT)?;
        let then = SystemTime::UNIX_EPOCH;
        Ok(FileAttr {
            ino: INodeNo(file),
            size: node.data.len() as u64,
            blocks: node.data.len().div_ceil(512) as u64,
            atime: then,
            mtime: then,
            ctime: then,
            crtime: then,
            kind: if node.is_directory { FileType::Directory } else { FileType::RegularFile },
            perm: node.mode,
            nlink: node.names,
            uid: node.uid,
            gid: node.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn make(
        &mut self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        is_directory: bool,
    ) -> Result<FileAttr, Errno> {
        if self.find(parent, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        let file = self.nodes.last_key_value().map_or(TOP, |(last, _)| *last) + 1;
        self.node(parent)?.entries.insert(name.into(), file);
        self.nodes.insert(file, Node::new(is_directory, mode, Some(request)));
        self.log(Op::Create { directory: parent.0, name: name.into(), file, is_directory });
        self.attributes(file)
    }

    /// Removes a name; the file stays while it is open.
    fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let file = self.find(parent, name)?;
        if !self.node(INodeNo(file))?.entries.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.node(parent)?.entries.remove(name);
        self.node(INodeNo(file))?.names -= 1;
        self.log(Op::Remove { directory: parent.0, name: name.into() });
        Ok(())
    }

    fn rename(&mut self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr), replaces: bool) -> Result<(), Errno> {
        let file = self.find(from.0, from.1)?;
        if let Ok(replaced) = self.find(to.0, to.1) {
            if !replaces {
                return Err(Errno::EEXIST);
            }
            self.node(INodeNo(replaced))?.names -= 1;
        }
        self.node(from.0)?.entries.remove(from.1);
        self.node(to.0)?.entries.insert(to.1.into(), file);
        self.log(Op::Rename { from: (from.0.0, from.1.into()), to: (to.0.0, to.1.into()) });
        Ok(())
    }

    fn cut(&mut self, file: INodeNo, bytes: u64) -> Result<(), Errno> {
        self.node(file)?.data.resize(usize::try_from(bytes).map_err(|_| Errno::EFBIG)?, 0);
        self.log(Op::Length { file: file.0, bytes });
        Ok(())
    }

    fn write(&mut self, file: INodeNo, at: u64, data: &[u8]) -> Result<u32, Errno> {
        let node = self.node(file)?;
        let (from, to) = (at as usize, at as usize + data.len());
        if node.data.len() < to {
            node.data.resize(to, 0);
        }
        node.data[from..to].copy_from_slice(data);
        self.log(Op::Write { file: file.0, at, data: data.into() });
        Ok(data.len() as u32)
    }

    fn read(&mut self, file: INodeNo, at: u64, size: u32) -> Result<&[u8], Errno> {
        let data = &self.node(file)?.data;
        let from = data.len().min(at as usize);
        Ok(&data[from..data.len().min(from + size as usize)])
    }

    /// FALLOC_FL_KEEP_SIZE is 1, FALLOC_FL_PUNCH_HOLE 2; the programs of these tests use nothing
    /// else.
    fn allocate(&mut self, file: INodeNo, at: u64, bytes: u64, mode: i32) -> Result<(), Errno> {
        if mode != 3 {
            return Err(Errno::EOPNOTSUPP);
        }
        let data = &mut self.node(file)?.data;
        let to = data.len().min((at + bytes) as usize);
        data[(at as usize).min(to)..to].fill(0);
        self.log(Op::Hole { file: file.0, at, bytes });
        Ok(())
    }
}

/// The file system as the kernel sees it.
struct Recorded(Arc<Mutex<Tree>>);

impl Recorded {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().unwrap()
    }
}

/// A mounted file system; dropping it unmounts.
pub struct Recorder {
    tree: Arc<Mutex<Tree>>,
    /// Unmounts when dropped.
    _session: BackgroundSession,
}

impl Recorder {
    /// Mounts an empty one on a directory.
    ///
    /// # Errors
    /// Mounting failed: no FUSE, or no permission.
    pub fn mount(directory: &Path) -> io::Result<Recorder> {
        let nodes = BTreeMap::from([(TOP, Node::new(true, 0o755, None))]);
        let tree = Arc::new(Mutex::new(Tree { nodes, log: Vec::new(), records: true }));
        let session = fuser::spawn_mount(Recorded(Arc::clone(&tree)), directory, &Config::default())?;
        Ok(Recorder { tree, _session: session })
    }

    /// Returns a function that adds notes to the log from any thread.
    pub fn notes(&self) -> impl Fn(u64) + Clone + Send + 'static {
        let tree = Arc::clone(&self.tree);
        move |what| tree.lock().unwrap().log(Op::Note(what))
    }

    /// Adds a note to the log.
    pub fn note(&self, what: u64) {
        self.notes()(what);
    }

    /// Returns the log so far, and stops logging.
    pub fn finish(&self) -> Vec<Op> {
        let mut tree = self.tree.lock().unwrap();
        tree.records = false;
        std::mem::take(&mut tree.log)
    }
}

/// Replies with the result.
macro_rules! answer {
    ($reply:ident, $result:expr) => {
        match $result {
            Ok(()) => $reply.ok(),
            Err(e) => $reply.error(e),
        }
    };
}

impl Filesystem for Recorded {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let tree = self.tree();
        match tree.find(parent, name).and_then(|file| tree.attributes(file)) {
            Ok(attributes) => reply.entry(&AT_ONCE, &attributes, Generation(0)),
            Err(e) => reply.error(e),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree().attributes(ino.0) {
            Ok(attributes) => reply.attr(&AT_ONCE, &attributes),
            Err(e) => reply.error(e),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut tree = self.tree();
        let set = tree.node(ino).map(|node| node.mode = mode.map_or(node.mode, |m| (m & 0o7777) as u16));
        let cut = set.and_then(|()| size.map_or(Ok(()), |size| tree.cut(ino, size)));
        match cut.and_then(|()| tree.attributes(ino.0)) {
            Ok(attributes) => reply.attr(&AT_ONCE, &attributes),
            Err(e) => reply.error(e),
        }
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        match self.tree().make(request, parent, name, mode & !umask, true) {
            Ok(attributes) => reply.entry(&AT_ONCE, &attributes, Generation(0)),
            Err(e) => reply.error(e),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.tree().make(request, parent, name, mode & !umask, false) {
            Ok(a) => reply.created(&AT_ONCE, &a, Generation(0), FileHandle(0), FopenFlags::empty()),
            Err(e) => reply.error(e),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.tree().remove(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.tree().remove(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let replaces = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        answer!(reply, self.tree().rename((parent, name), (new_parent, new_name), replaces));
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.tree().read(ino, offset, size) {
            Ok(data) => reply.data(data),
            Err(e) => reply.error(e),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.tree().write(ino, offset, data) {
            Ok(written) => reply.written(written),
            Err(e) => reply.error(e),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.tree().log(Op::Sync(ino.0));
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.tree().log(Op::Sync(ino.0));
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut tree = self.tree();
        let entries = match tree.node(ino) {
            Ok(node) => node.entries.clone(),
            Err(e) => return reply.error(e),
        };
        for (n, (name, file)) in entries.into_iter().enumerate().skip(offset as usize) {
            let kind = if tree.nodes[&file].is_directory { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(file), n as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn fallocate(&self, _: &Request, ino: INodeNo, _: FileHandle, at: u64, bytes: u64, mode: i32, reply: ReplyEmpty) {
        answer!(reply, self.tree().allocate(ino, at, bytes, mode));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // Enough room for any query.
        reply.statfs(1 << 30, 1 << 30, 1 << 30, 1 << 20, 1 << 20, 4096, 255, 4096);
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }
}
