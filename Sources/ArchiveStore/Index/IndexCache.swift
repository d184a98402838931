internal import Codecs
package import SystemIO

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
package final class IndexCache: Sendable {
  /// The copies, or nil if the directory cannot be used.
  let copies: IndexCopies?

  /// Uses a directory for the copies of one repository, and creates it with its parents if it is
  /// missing. A directory that other users can write to is not used.
  package init(directory: ByteString) { copies = IndexCopies(directory: directory) }

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
  package func invalidateVerification() { copies?.invalidateVerification() }

  /// Starts that verification on background threads, ahead of an operation that stores or restores.
  /// The next `invalidateVerification()` then only waits for them.
  package func prefetchVerification() { copies?.prefetchVerification() }

  /// Removes the copies of all other objects and saves the verification records of the rest.
  func keep(only ids: [Digest]) { copies?.keep(only: ids) }
}
