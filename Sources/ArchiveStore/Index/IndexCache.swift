internal import Codecs
internal import Synchronization
public import SystemIO

/// This host's copies of a repository's index objects. They are mapped and searched in place, so a
/// repository of any size opens at once and uses no memory of the process.
///
/// A copy is made once, from bytes that match the object's id. The result is recorded with the
/// inode, size and times of the file, and trusted while these and the boot id stay the same. A copy
/// without such a record is verified again, and replaced if it does not match. A copy that is
/// damaged, truncated, owned by another user or left by a crash therefore costs only time. Writers
/// and restores trust no record: they read each copy once and verify it. Without a usable
/// directory, objects are read into memory. Safe to use from any thread.
///
/// The copy of an encrypted object is its content, for which the id is not a checksum. The record
/// therefore has the content's own hash, and a copy without a record is made again. So is a copy
/// that another identity opened: for this identity, data that only a lost or replaced key opens
/// does not exist, and a backup must store it again.
///
/// The cache never determines which objects exist: the listing of the repository does
/// (docs/decisions/0016-the-index-is-searched-in-the-cache.md).
public final class IndexCache: Sendable {
  /// The copies, or nil if the directory cannot be used.
  let copies: Copies?

  /// Uses a directory for the copies of one repository, and creates it with its parents if it is
  /// missing. A directory that other users can write to is not used.
  ///
  /// - Parameter isEncrypted: whether the repository is encrypted.
  public init(directory: ByteString, isEncrypted: Bool) {
    copies = Copies(directory: directory, isEncrypted: isEncrypted)
  }

  /// Whether a name in the directory is that of a copy, of the records of the verified ones, or of
  /// a file that is being written.
  public static func isFile(_ name: ByteString) -> Bool {
    name == VerifiedCopies.name || AtomicFile.isTemporary(name)
      || RepositoryLayout.plain.id(name, kind: .index) != nil
  }

  /// Opens an object from its copy, which is made if it is missing. Returns nil if the cache cannot
  /// be used.
  func object(_ id: Digest, of storage: RepositoryStorage) throws(StoreError) -> IndexObject? {
    if let copies, copies.isOpened(id, by: storage.cipher), let object = copies.open(id) {
      return object
    }
    return try readAgain(id, of: storage)
  }

  /// Opens an object from a copy that is made now, regardless of an existing copy. This proves that
  /// the storage holds the object intact. Returns nil if it does not, or if the cache cannot be
  /// used.
  func readAgain(_ id: Digest, of storage: RepositoryStorage) throws(StoreError) -> IndexObject? {
    guard let copies, try copies.make(id, of: storage) else { return nil }
    if let object = copies.open(id) { return object }
    copies.remove(id)
    return nil
  }

  /// Makes a copy of an object that was just stored, or returns nil if that fails.
  ///
  /// - Parameter cipher: the encryption of the object.
  func add(
    _ object: EncodedObject, content: [UInt8], cipher: ObjectCipher?
  ) -> IndexObject? {
    guard let copies, copies.make(object, content: content, opener: cipher?.openerOfNew) else {
      return nil
    }
    let object = copies.open(object.id)
    copies.saveNotes()
    return object
  }

  /// Requires that each copy is verified again before its next use. Operations that store or
  /// restore call this first.
  public func invalidateVerification() { copies?.invalidateVerification() }

  /// Starts that verification on background threads, ahead of an operation that stores or restores.
  /// The next `invalidateVerification()` then only waits for them.
  public func prefetchVerification() { copies?.prefetchVerification() }

  /// Opens the copies of objects that are no longer listed.
  func copies(besides listed: Set<Digest>) -> [IndexObject] {
    guard let copies else { return [] }
    return copies.ids.filter { !listed.contains($0) }.compactMap { copies.open($0) }
  }

  /// Removes the copies that name none of these packs, and saves the verification records of the
  /// rest. A copy that cannot be opened stays.
  func retain(naming packs: Set<Digest>) {
    guard let copies else { return }
    copies.retain(
      only: copies.ids.filter { id in
        copies.open(id)?.packIDs.contains { packs.contains($0) } ?? true
      })
  }

  /// Removes the copies of all other objects and saves the verification records of the rest.
  func retain(only ids: [Digest]) { copies?.retain(only: ids) }
}

extension IndexCache {
  /// The files of an `IndexCache`, in a directory that no other user can write to.
  final class Copies: Sendable {
    let notes: Mutex<VerifiedCopies>
    private let directory: Directory
    private let isEncrypted: Bool
    /// The threads that verify copies ahead of their first use.
    private let ahead = Mutex<Workers?>(nil)

    private static let suffix = ".index"

    init?(directory path: ByteString, isEncrypted: Bool) {
      guard let directory = try? Directory.make(path: path, permissions: 0o700),
        let status = try? directory.status(), status.user == Host.userID,
        status.permissions & 0o022 == 0
      else { return nil }
      notes = Mutex(VerifiedCopies(in: directory))
      self.directory = directory
      self.isEncrypted = isEncrypted
    }

    static func name(_ id: Digest) -> ByteString { ByteString(id.hex + suffix) }

    /// Whether one of the identities opens the object of a copy, according to the record of the
    /// copy. A host that has none and only writes uses all copies that it has.
    func isOpened(_ id: Digest, by cipher: ObjectCipher?) -> Bool {
      guard isEncrypted, let cipher, cipher.canRead else { return true }
      guard let note = notes.withLock({ $0.note(id) }) else { return false }
      return cipher.opens(note.opener)
    }

    /// Opens a copy that matches its id, according to its record or to a verification now.
    ///
    /// Verification reads the file instead of its mapping, so a read error is reported as an error
    /// and does not end the process.
    func open(_ id: Digest) -> IndexObject? {
      awaitThreads()
      return withFile(of: id) { file, status in
        guard let map = try? MappedFile(file) else { return nil }
        let (known, isSound, isVerified) = notes.withLock {
          ($0.note(id), $0.isSound(id), $0.isVerified(id, status))
        }
        guard let expected = note(of: id, known: known, status),
          isVerified || Self.digest(of: file, size: status.size) == expected.content,
          let object = try? IndexObject(
            id: id, checked: .mapped(map), storedSize: expected.storedSize),
          isSound || object.firstFault() == nil
        else { return nil }
        if !isVerified { notes.withLock { $0.insert(expected) } }
        return object
      }
    }

    /// Returns the expected state of a copy, or nil if it is unknown.
    private func note(
      of id: Digest, known: VerifiedCopies.Note?, _ status: FileStatus
    ) -> VerifiedCopies.Note? {
      if let known { return known.replacing(status) }
      if isEncrypted { return nil }
      return VerifiedCopies.Note(
        id: id, content: id, opener: ObjectCipher.noOpener, storedSize: status.size, status)
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
    func make(_ id: Digest, of storage: RepositoryStorage) throws(StoreError) -> Bool {
      guard let size = try storage.status(storage.layout.index(id))?.size,
        size <= UInt64(storage.storedLimit(of: FormatLimit.index)), let file = begin()
      else { return false }
      guard let content = try write(id, size: size, of: storage, to: file) else { return false }
      let opener = try storage.cipher?.opener(
        of: storage.layout.index(id), size: size, in: storage.base)
      return commit(file, id, content: content, opener: opener, storedSize: size)
    }

    /// Writes the content of an object, and returns its hash; nil if it cannot be written, or does
    /// not match the id.
    private func write(
      _ id: Digest, size: UInt64, of storage: RepositoryStorage, to file: borrowing AtomicFile
    ) throws(StoreError) -> Digest? {
      var hash = Blake2b()
      var isWritten = true
      do {
        try storage.forEachPiece(of: id, kind: .index, size: size) { piece throws(StoreError) in
          hash.update(piece)
          isWritten = isWritten && (try? file.write(piece)) != nil
        }
      } catch {
        guard error.code == .damaged else { throw error }
        return nil
      }
      return isWritten ? hash.finish() : nil
    }

    /// Writes the content of an object that was just stored. Returns false if that fails.
    func make(_ object: EncodedObject, content: [UInt8], opener: Digest?) -> Bool {
      guard let file = begin(), (try? file.write(content)) != nil else { return false }
      let digest = isEncrypted ? Blake2b.hash(content) : object.id
      return commit(file, object.id, content: digest, opener: opener, storedSize: object.size)
    }

    /// Gives a copy its name. It is verified when it is opened.
    private func commit(
      _ file: consuming AtomicFile, _ id: Digest, content: Digest, opener: Digest?,
      storedSize: UInt64
    ) -> Bool {
      guard (try? file.commit(as: Self.name(id), durably: isEncrypted)) != nil else { return false }
      guard isEncrypted else { return true }
      let isThere: Bool? = withFile(of: id) { _, status in
        let note = VerifiedCopies.Note(
          id: id, content: content, opener: opener ?? ObjectCipher.noOpener, storedSize: storedSize,
          status)
        notes.withLock { $0.expect(note) }
        return true
      }
      return isThere == true
    }

    /// The objects that have a copy.
    var ids: [Digest] {
      ((try? directory.names()) ?? []).compactMap { name in
        RepositoryLayout.plain.id(name, kind: .index)
      }.sorted()
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
        guard let expected = note(of: id, known: notes.withLock { $0.note(id) }, status),
          Self.digest(of: file, size: status.size) == expected.content
        else { return nil }
        return notes.withLock { $0.insert(expected) }
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
    func saveNotes() { notes.withLock { $0.save(in: directory, isEncrypted: isEncrypted) } }

    /// Whether a file is a temporary one that has not been written to for an hour.
    private func isLeftOver(_ name: ByteString) -> Bool {
      guard AtomicFile.isTemporary(name), let status = try? directory.status(name) else {
        return false
      }
      return status.modified.seconds < Host.now().seconds - 3600
    }
  }
}
