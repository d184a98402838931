internal import Codecs
internal import SystemIO

extension IndexCache {
  /// The verified copies of a cache, identified by their file status. After another boot of the
  /// kernel all are verified again, because a crash can lose written data.
  struct VerifiedCopies {
    /// A copy, and the status of its file when it was verified.
    struct Note: Hashable {
      let id: Digest
      /// The hash of the copy. It is the id if the repository is not encrypted.
      let content: Digest
      /// The identity that opens the object (`ObjectCipher.opener`).
      let opener: Digest
      /// The size of the stored object in bytes.
      let storedSize: UInt64
      let identity: FileIdentity
      let size: UInt64
      let modified: Timestamp
      let changed: Timestamp

      init(
        id: Digest, content: Digest, opener: Digest, storedSize: UInt64, _ status: FileStatus
      ) {
        (self.id, self.content) = (id, content)
        (self.opener, self.storedSize) = (opener, storedSize)
        identity = status.identity
        size = status.size
        modified = status.modified
        changed = status.changed
      }

      /// Returns the note of the same copy with the file's present status.
      func replacing(_ status: FileStatus) -> Note {
        Note(id: id, content: content, opener: opener, storedSize: storedSize, status)
      }
    }

    private var notes: [Digest: Note] = [:]
    private var isChanged = false
    /// The objects whose copies must be verified again.
    private var unverified: Set<Digest> = []

    /// Copies that were written and have not been verified since.
    private var written: [Digest: Note] = [:]

    /// The name of the file with the notes.
    static let name: ByteString = "checked"
    private static let magic = Array("sbxnote3".utf8)
    /// The size of the magic and the boot id. The hash of everything before it follows the notes.
    private static let headSize = 8 + Digest.byteCount
    private static let noteSize = 3 * Digest.byteCount + 4 * 8 + 2 * 12
    private static let limit = 16 << 20

    /// Creates an empty set.
    init() {}

    var count: Int { notes.count }

    /// The objects with an intact copy.
    var ids: [Digest] { Array(notes.keys) }

    /// Whether a copy is unchanged since it was verified and need not be verified again.
    func isVerified(_ id: Digest, _ status: FileStatus) -> Bool {
      guard let note = notes[id] else { return false }
      return note == note.replacing(status) && !unverified.contains(id)
    }

    /// Whether an intact copy of an object was ever found, which proves that its content conforms
    /// to the format.
    func isSound(_ id: Digest) -> Bool { notes[id] != nil }

    /// Returns the expected state of an object's copy; for a copy that was made again, the new
    /// state.
    func note(_ id: Digest) -> Note? { written[id] ?? notes[id] }

    /// Requires that each copy is verified again before its note is trusted.
    mutating func invalidateAll() { unverified = Set(notes.keys) }

    mutating func insert(_ note: Note) {
      unverified.remove(note.id)
      written[note.id] = nil
      isChanged = notes.updateValue(note, forKey: note.id) != note || isChanged
    }

    /// Records the expected state of a copy that was just written, for its verification.
    mutating func expect(_ note: Note) { written[note.id] = note }

    mutating func retain(only ids: Set<Digest>) {
      let before = notes.count
      notes = notes.filter { ids.contains($0.key) }
      isChanged = isChanged || notes.count != before
    }
  }
}

// MARK: - File

extension IndexCache.VerifiedCopies {
  /// Reads the notes of a cache. The result is empty if there is no intact file.
  init(in directory: borrowing Directory) {
    guard let boot = Self.boot, let file = try? directory.file(Self.name),
      let status = try? file.status(), status.kind == .file, status.user == Host.userID,
      let bytes = try? file.readAll(limit: Self.limit)
    else { return }
    let end = bytes.count - Digest.byteCount
    guard end >= Self.headSize, (end - Self.headSize) % Self.noteSize == 0,
      bytes.starts(with: Self.magic)
    else { return }
    let table = bytes.span.bytes
    guard Blake2b.hash(table.extracting(0..<end)) == Digest(table, at: end) else { return }
    for at in stride(from: Self.headSize, to: end, by: Self.noteSize) {
      let note = Note(table, at: at)
      notes[note.id] = note
    }
    if !bytes.dropFirst(Self.magic.count).starts(with: boot.bytes) { invalidateAll() }
  }

  /// Writes the notes if they changed. If that fails, copies are verified again next time.
  ///
  /// - Parameter isEncrypted: whether a copy without a note is lost. Then the notes that other
  ///   programs added meanwhile stay, to be verified, and the file is durable.
  mutating func save(in directory: borrowing Directory, isEncrypted: Bool) {
    guard isChanged, let boot = Self.boot else { return }
    isChanged = false
    if isEncrypted { addNotes(from: directory) }
    var bytes = Self.magic + boot.bytes
    for note in notes.values.sorted(by: { $0.id < $1.id }) { note.encode(into: &bytes) }
    bytes += Blake2b.hash(bytes).bytes
    do throws(SystemError) {
      let file = try AtomicFile(in: directory, permissions: 0o600)
      try file.write(bytes)
      try file.commit(as: Self.name, durably: isEncrypted)
    } catch {}
  }

  /// Adds the file's notes about copies that exist and are not known.
  private mutating func addNotes(from directory: borrowing Directory) {
    for note in Self(in: directory).notes.values where notes[note.id] == nil {
      let copy = IndexCache.Copies.name(note.id)
      guard (try? directory.statusIfPresent(copy)) != nil else { continue }
      notes[note.id] = note
      unverified.insert(note.id)
    }
  }

  private static var boot: Digest? { Host.bootID.map { Blake2b.hash(Array($0.utf8)) } }
}

extension IndexCache.VerifiedCopies.Note {
  fileprivate func encode(into bytes: inout [UInt8]) {
    for digest in [id, content, opener] { digest.append(to: &bytes) }
    for value in [storedSize, identity.device, identity.inode, size] {
      bytes.append(littleEndian: value)
    }
    for time in [modified, changed] {
      bytes.append(littleEndian: time.seconds)
      bytes.append(littleEndian: time.nanoseconds)
    }
  }

  fileprivate init(_ bytes: RawSpan, at start: Int) {
    id = Digest(bytes, at: start)
    content = Digest(bytes, at: start + Digest.byteCount)
    opener = Digest(bytes, at: start + 2 * Digest.byteCount)
    storedSize = bytes.integer(at: start + 3 * Digest.byteCount, as: UInt64.self)
    let at = start + 3 * Digest.byteCount + 8
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
