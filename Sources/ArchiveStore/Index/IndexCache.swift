internal import Codecs
internal import Synchronization
public import SystemIO

/// This host's copies of a repository's index objects. They are mapped and searched in place, so a
/// repository of any size opens at once and uses no memory of the process.
///
/// A copy is made once and verified against its id. The result is recorded with the inode, size and
/// times of the file, and trusted while these and the boot id stay the same. A copy without such a
/// record is verified again, and replaced if it does not match. A copy that is damaged, truncated,
/// owned by another user or left by a crash therefore costs only time. Writers and restores trust
/// no record: they read each copy once and verify it. Without a usable directory, objects are read
/// into memory. Safe to use from any thread.
///
/// The cache never determines which objects exist: the listing of the repository does
/// (docs/decisions/0016-the-index-is-searched-in-the-cache.md).
public final class IndexCache: Sendable {
  /// The copies, or nil if the directory cannot be used.
  let copies: Copies?

  /// Uses a directory for the copies of one repository, and creates it with its parents if it is
  /// missing. A directory that other users can write to is not used.
  public init(directory: ByteString) { copies = Copies(directory: directory) }

  /// Opens an object from its copy, which is made if it is missing. Returns nil if the cache cannot
  /// be used.
  func object(_ id: Digest, of storage: any Storage) throws(StoreError) -> IndexObject? {
    if let object = copies?.open(id) { return object }
    return try readAgain(id, of: storage)
  }

  /// Opens an object from a copy that is made now, regardless of an existing copy. This proves that
  /// the storage holds the object intact. Returns nil if it does not, or if the cache cannot be
  /// used.
  func readAgain(_ id: Digest, of storage: any Storage) throws(StoreError) -> IndexObject? {
    guard let copies, try copies.make(id, of: storage) else { return nil }
    if let object = copies.open(id) { return object }
    copies.remove(id)
    return nil
  }

  /// Makes a copy of an object that was just stored, or returns nil if that fails.
  func add(_ id: Digest, _ bytes: [UInt8]) -> IndexObject? {
    guard let copies, copies.make(id, bytes) else { return nil }
    let object = copies.open(id)
    copies.saveNotes()
    return object
  }

  /// Requires that each copy is verified again before its next use. Operations that store or
  /// restore call this first.
  public func invalidateVerification() { copies?.invalidateVerification() }

  /// Starts that verification on background threads, ahead of an operation that stores or restores.
  /// The next `invalidateVerification()` then only waits for them.
  public func prefetchVerification() { copies?.prefetchVerification() }

  /// Removes the copies of all other objects and saves the verification records of the rest.
  func retain(only ids: [Digest]) { copies?.retain(only: ids) }
}

extension IndexCache {
  /// The files of an `IndexCache`, in a directory that no other user can write to.
  final class Copies: Sendable {
    let notes: Mutex<VerifiedCopies>
    private let directory: Directory
    /// The threads that verify copies ahead of their first use.
    private let ahead = Mutex<Workers?>(nil)

    private static let suffix = ".index"

    init?(directory path: ByteString) {
      guard let directory = try? Directory.make(path: path, permissions: 0o700),
        let status = try? directory.status(), status.user == Host.userID,
        status.permissions & 0o022 == 0
      else { return nil }
      notes = Mutex(VerifiedCopies(in: directory))
      self.directory = directory
    }

    private static func name(_ id: Digest) -> ByteString { ByteString(id.hex + suffix) }

    /// Opens a copy that matches its id, according to its record or to a verification now.
    ///
    /// Verification reads the file instead of its mapping, so a read error is reported as an error
    /// and does not end the process.
    func open(_ id: Digest) -> IndexObject? {
      awaitThreads()
      return withFile(of: id) { file, status in
        guard let map = try? MappedFile(file) else { return nil }
        let note = VerifiedCopies.Note(id: id, status)
        let (isWhole, isSound) = notes.withLock { ($0.contains(note), $0.contains(id)) }
        guard isWhole || Self.digest(of: file, size: status.size) == id,
          let object = try? IndexObject(id: id, checked: .mapped(map)),
          isSound || object.firstFault() == nil
        else { return nil }
        if !isWhole { notes.withLock { $0.insert(note) } }
        return object
      }
    }

    /// Calls `body` with the file of a copy, if the file may be used.
    @discardableResult
    private func withFile<Result>(
      of id: Digest, _ body: (borrowing Descriptor, FileStatus) -> Result?
    ) -> Result? {
      guard let file = try? directory.file(Self.name(id)),
        let status = try? file.status(), status.kind == .file, status.user == Host.userID,
        status.size <= UInt64(FormatLimit.index)
      else { return nil }
      return body(file, status)
    }

    private static func digest(of file: borrowing Descriptor, size: UInt64) -> Digest? {
      var hash = Blake2b()
      let read = try? file.readPieces(
        size: size, isSparse: false, data: { hash.update($0) }, hole: { _ in })
      return read == size ? hash.finish() : nil
    }

    /// Copies an object with at most 4 MiB of memory. Returns false if the copy cannot be written
    /// or the object does not match its id.
    ///
    /// - Throws: `StoreError` if the object cannot be read.
    func make(_ id: Digest, of storage: any Storage) throws(StoreError) -> Bool {
      let path = RepositoryLayout.index(id)
      guard let size = try storage.status(path)?.size, size <= UInt64(FormatLimit.index),
        let file = begin()
      else { return false }
      var hash = Blake2b()
      var offset: UInt64 = 0
      while offset < size {
        let count = Int(min(size - offset, 4 << 20))
        let bytes = try storage.load(path, offset: offset, count: count)
        hash.update(bytes)
        guard (try? file.write(bytes)) != nil else { return false }
        offset += UInt64(count)
      }
      guard hash.finish() == id else { return false }
      return (try? file.commit(as: Self.name(id), durably: false)) != nil
    }

    /// Writes the bytes of an object. Returns false if that fails.
    func make(_ id: Digest, _ bytes: [UInt8]) -> Bool {
      guard let file = begin(), (try? file.write(bytes)) != nil else { return false }
      return (try? file.commit(as: Self.name(id), durably: false)) != nil
    }

    /// Removes a damaged copy.
    func remove(_ id: Digest) { try? directory.remove(Self.name(id)) }

    private func begin() -> AtomicFile? { try? AtomicFile(in: directory, permissions: 0o600) }

    /// Removes the copies of all other objects and the temporary files of interrupted programs.
    func retain(only ids: [Digest]) {
      let kept = Set(ids.map(Self.name))
      for name in (try? directory.names()) ?? [] {
        let isCopy = name.utf8?.hasSuffix(Self.suffix) == true
        if (isCopy && !kept.contains(name)) || isLeftOver(name) { try? directory.remove(name) }
      }
      notes.withLock { $0.retain(only: Set(ids)) }
      saveNotes()
    }

    /// Requires that each copy is verified again.
    func invalidateVerification() {
      // Copies verified ahead are already marked as unverified, or have been verified since.
      if !awaitThreads() { notes.withLock { $0.invalidateAll() } }
    }

    /// Marks all copies as unverified and starts to verify them. Without threads they are verified
    /// when they are opened.
    func prefetchVerification() {
      awaitThreads()
      let ids = notes.withLock { notes in
        notes.invalidateAll()
        return notes.ids
      }
      let threads = min(ids.count, Host.processors)
      guard threads > 0,
        let workers = try? Workers(count: threads, capacity: ids.count, name: "index")
      else { return }
      for id in ids { workers.submit { [self] in check(id) } }
      ahead.withLock { $0 = workers }
    }

    private func check(_ id: Digest) {
      withFile(of: id) { file, status -> Void? in
        guard Self.digest(of: file, size: status.size) == id else { return nil }
        return notes.withLock { $0.insert(VerifiedCopies.Note(id: id, status)) }
      }
    }

    /// Waits for the verification threads. Returns whether there were any.
    @discardableResult
    private func awaitThreads() -> Bool {
      let workers = ahead.withLock { workers in
        let begun = workers
        workers = nil
        return begun
      }
      workers?.finish()
      return workers != nil
    }

    /// Saves the verification records for the next program.
    func saveNotes() { notes.withLock { $0.save(in: directory) } }

    /// Whether a file is a temporary that was not written to for an hour.
    private func isLeftOver(_ name: ByteString) -> Bool {
      guard AtomicFile.isTemporary(name), let status = try? directory.status(name) else {
        return false
      }
      return status.modified.seconds < Host.now().seconds - 3600
    }
  }
}

extension IndexCache {
  /// The verified copies of a cache, identified by their file status. Valid for one boot of the
  /// kernel only, because a crash can lose written data.
  struct VerifiedCopies {
    /// The status of a file when it was verified.
    struct Note: Hashable {
      let id: Digest
      let identity: FileIdentity
      let size: UInt64
      let modified: Timestamp
      let changed: Timestamp

      init(id: Digest, _ status: FileStatus) {
        self.id = id
        identity = status.identity
        size = status.size
        modified = status.modified
        changed = status.changed
      }
    }

    private var notes: [Digest: Note] = [:]
    private var isChanged = false
    /// The objects whose copies must be verified again.
    private var unverified: Set<Digest> = []

    /// The name of the file with the notes.
    static let name: ByteString = "checked"
    private static let magic = Array("sbxnote1".utf8)
    /// The size of the magic and the boot id. The hash of everything before it follows the notes.
    private static let headSize = 8 + Digest.byteCount
    private static let noteSize = Digest.byteCount + 3 * 8 + 2 * 12
    private static let limit = 16 << 20

    /// Creates an empty set.
    init() {}

    var count: Int { notes.count }

    /// The objects with an intact copy.
    var ids: [Digest] { Array(notes.keys) }

    /// Whether a copy is unchanged since it was verified and need not be verified again.
    func contains(_ note: Note) -> Bool {
      notes[note.id] == note && !unverified.contains(note.id)
    }

    /// Whether an intact copy of an object was ever found, which proves that its content conforms
    /// to the format.
    func contains(_ id: Digest) -> Bool { notes[id] != nil }

    /// Requires that each copy is verified again before its note is trusted.
    mutating func invalidateAll() { unverified = Set(notes.keys) }

    mutating func insert(_ note: Note) {
      unverified.remove(note.id)
      isChanged = notes.updateValue(note, forKey: note.id) != note || isChanged
    }

    mutating func retain(only ids: Set<Digest>) {
      let before = notes.count
      notes = notes.filter { ids.contains($0.key) }
      isChanged = isChanged || notes.count != before
    }
  }
}

// MARK: - File

extension IndexCache.VerifiedCopies {
  /// Reads the notes of a cache. The result is empty if there is no intact file of this boot.
  init(in directory: borrowing Directory) {
    guard let boot = Self.boot, let file = try? directory.file(Self.name),
      let status = try? file.status(), status.kind == .file, status.user == Host.userID,
      let bytes = try? file.readAll(limit: Self.limit)
    else { return }
    let end = bytes.count - Digest.byteCount
    guard end >= Self.headSize, (end - Self.headSize) % Self.noteSize == 0,
      bytes.starts(with: Self.magic + boot.bytes)
    else { return }
    let table = bytes.span.bytes
    guard Blake2b.hash(table.extracting(0..<end)) == Digest(table, at: end) else { return }
    for at in stride(from: Self.headSize, to: end, by: Self.noteSize) {
      let note = Note(table, at: at)
      notes[note.id] = note
    }
  }

  /// Writes the notes if they changed. If that fails, copies are verified again next time.
  mutating func save(in directory: borrowing Directory) {
    guard isChanged, let boot = Self.boot else { return }
    isChanged = false
    var bytes = Self.magic + boot.bytes
    for note in notes.values.sorted(by: { $0.id < $1.id }) { note.encode(into: &bytes) }
    bytes += Blake2b.hash(bytes).bytes
    do throws(SystemError) {
      let file = try AtomicFile(in: directory, permissions: 0o600)
      try file.write(bytes)
      try file.commit(as: Self.name, durably: false)
    } catch {}
  }

  private static var boot: Digest? { Host.bootID.map { Blake2b.hash(Array($0.utf8)) } }
}

extension IndexCache.VerifiedCopies.Note {
  fileprivate func encode(into bytes: inout [UInt8]) {
    id.append(to: &bytes)
    for value in [identity.device, identity.inode, size] { bytes.append(littleEndian: value) }
    for time in [modified, changed] {
      bytes.append(littleEndian: time.seconds)
      bytes.append(littleEndian: time.nanoseconds)
    }
  }

  fileprivate init(_ bytes: RawSpan, at start: Int) {
    id = Digest(bytes, at: start)
    let at = start + Digest.byteCount
    identity = FileIdentity(
      device: bytes.integer(at: at, as: UInt64.self),
      inode: bytes.integer(at: at + 8, as: UInt64.self))
    size = bytes.integer(at: at + 16, as: UInt64.self)
    modified = Self.time(bytes, at: at + 24)
    changed = Self.time(bytes, at: at + 36)
  }

  private static func time(_ bytes: RawSpan, at start: Int) -> Timestamp {
    Timestamp(
      seconds: bytes.integer(at: start, as: Int64.self),
      nanoseconds: bytes.integer(at: start + 8, as: UInt32.self))
  }
}
