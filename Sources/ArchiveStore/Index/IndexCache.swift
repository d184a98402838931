internal import Codecs
public import SystemIO

/// The host's copies of a repository's index objects, mapped and searched in place, so that a
/// repository of any size opens at once and takes no memory of the program's own.
///
/// A copy is made once and held against its id. What was found whole is noted with the file's inode,
/// size and times, and trusted while these and the kernel's run are the same; a copy of which there
/// is no such note is held against its id again, and replaced if it is not what it should be. So a
/// copy that is damaged, cut off, of another user or left by a crash costs time and nothing else. A
/// writer and a restore believe no note: they read each copy once, and hold it against its id.
/// Where the directory cannot be used, objects are read into memory. For any thread.
///
/// Which objects there are is never asked of it: the repository's own listing says that
/// (docs/decisions/0016-the-index-is-searched-in-the-cache.md).
public final class IndexCache: Sendable {
  /// Nothing where the directory cannot be used.
  let copies: IndexCopies?

  /// Uses a directory for the copies of one repository; it is made, with those above it, where it is
  /// missing. It is not used where others can write to it.
  public init(directory: ByteString) { copies = IndexCopies(directory: directory) }

  /// Opens an object from its copy, which is made if there is none. Nothing where the cache cannot
  /// be used.
  func object(_ id: Digest, of storage: any Storage) throws(StoreError) -> IndexObject? {
    if let object = copies?.open(id) { return object }
    return try readAgain(id, of: storage)
  }

  /// Opens an object from a copy that is made now, whatever copy there was: so what the storage holds
  /// was read, and is the object. Nothing where it is not, or the cache cannot be used.
  func readAgain(_ id: Digest, of storage: any Storage) throws(StoreError) -> IndexObject? {
    guard let copies, try copies.make(id, of: storage) else { return nil }
    if let object = copies.open(id) { return object }
    copies.remove(id)
    return nil
  }

  /// Makes a copy of an object that was just stored. Nothing where that does not work.
  func add(_ id: Digest, _ bytes: [UInt8]) -> IndexObject? {
    guard let copies, copies.make(id, bytes) else { return nil }
    let object = copies.open(id)
    copies.saveNotes()
    return object
  }

  /// Has each copy held against its id once more, before it is used again: for who stores or
  /// restores by it.
  public func invalidateVerification() { copies?.invalidateVerification() }

  /// Begins with that in threads of its own, for who stores or restores by it in a moment: the next
  /// `invalidateVerification()` has begun here.
  public func prefetchVerification() { copies?.prefetchVerification() }

  /// Removes the copies of all other objects, and keeps what is known of the rest for the next
  /// program.
  func keep(only ids: [Digest]) { copies?.keep(only: ids) }
}
