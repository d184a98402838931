internal import Codecs
internal import SystemIO

/// The version of a file's content in a source, by facts that are known without reading it.
///
/// A source that has such facts lets an import take the content from the last import instead
/// (`EntrySource.recognize`).
package struct ContentVersion: Hashable, Sendable {
  /// The digest of the content's name, which is the same in successive states of the source.
  let name: Digest
  /// The digest of all facts that change with the content.
  let facts: Digest
  /// Whether equal facts alone prove equal contents: the content had been unchanged long enough
  /// when the source was made, so a later change must have changed the facts.
  var isSettled: Bool
  /// The file that has the content on this host.
  let file: StoredFile

  /// The identity of a file with a content. A program that stores another content under its name
  /// changes one of these.
  struct StoredFile: Hashable, Sendable {
    let size: UInt64
    let inode: UInt64
    let modified: Timestamp

    init(size: UInt64, inode: UInt64, modified: Timestamp) {
      (self.size, self.inode, self.modified) = (size, inode, modified)
    }

    init(_ status: FileStatus) {
      self.init(size: status.size, inode: status.identity.inode, modified: status.modified)
    }
  }

  /// Whether a content with this version is the one that an earlier import read. The size of the
  /// file is compared in each case: a content that was cut off is read, and reported.
  func isUnchanged(since earlier: ContentVersion) -> Bool {
    guard name == earlier.name, facts == earlier.facts else { return false }
    return earlier.isSettled ? file.size == earlier.file.size : file == earlier.file
  }
}
