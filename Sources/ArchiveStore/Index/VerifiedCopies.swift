internal import Codecs
internal import SystemIO

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
