/// The content of a file, detached from its source: another thread can read it while the source
/// continues with the next entry.
package protocol DetachedContent: Sendable {
  /// Appends the next bytes, at most 1 MiB, and returns their number; 0 at the end.
  ///
  /// - Throws: as `EntrySource.read` does.
  func append(to bytes: inout [UInt8]) throws(InterchangeError) -> Int
}
