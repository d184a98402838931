internal import SystemIO

/// A large piece of a file that was written in one call and is being flushed to disk.
///
/// A large restore would fill the page cache and evict the user's working set, so a large piece is
/// dropped from the cache once it is on disk, like the data that a backup stores (docs/design.md,
/// "Backup and restore"). Each piece is awaited while the next one is being flushed, to keep both
/// the disk and the threads busy.
final class LargePiece {
  /// The number of bytes from which a piece is large. Smaller pieces are flushed together
  /// (`EarlySync`): starting their writeback one by one gained nothing.
  static let least = 1 << 20

  private let file: Descriptor
  private let place: Range<UInt64>

  /// Starts the writeback of a piece. Returns nil if no descriptor is left to wait with; the piece
  /// is written nonetheless.
  init?(at place: Range<UInt64>, in file: borrowing Descriptor) throws(SystemError) {
    try file.beginSync(place)
    guard let second = try? file.duplicate() else { return nil }
    self.place = place
    self.file = second
  }

  /// Waits until the piece is on disk, and drops it from the page cache. Like all other data, it is
  /// durable only after the final sync of the volume.
  func finish() throws(SystemError) {
    try file.endSync(place)
    file.willNotBeReadSoon(place)
  }
}
