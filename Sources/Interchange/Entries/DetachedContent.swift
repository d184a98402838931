/// The content of a file that is apart from its source: one other thread can read it, while the source
/// continues with the next entry.
package protocol DetachedContent: Sendable {
  /// Reads the next bytes as `EntrySource.read` does.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int
}
