package import SandboxModel

/// The entries of a package of any form, read once and in sequence.
///
/// A directory precedes its content, and each path occurs once. No path leads through a link of the
/// package, and no link leads out of the bundle.
package protocol EntrySource: ~Copyable {
  /// Returns the next entry, or nil after the last one. Skips the unread part of the previous file.
  ///
  /// - Throws: `package` if the package is damaged or has changed since it was opened, `system` for
  ///   a failed system call.
  mutating func next() throws(ModelError) -> PackageEntry?

  /// Reads from the file that `next` returned last into `buffer`, and returns the number of bytes
  /// read: less than the buffer's size only at the end of the file, and 0 after it.
  ///
  /// Throws if the file's content does not have the size given in its entry.
  mutating func read(into buffer: inout [UInt8]) throws(ModelError) -> Int
}
