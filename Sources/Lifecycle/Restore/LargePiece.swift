internal import SystemIO

/// A large piece of a file that was written in one call, on its way to the disk.
///
/// Whoever restores much would fill the system's memory with it, and push out what the user works
/// with: so a large piece leaves the memory once it is on the disk, as what a backup stores does
/// (docs/design.md, "Backup and restore"). It is waited for while the next one is on its way, so that
/// the disk and the threads both have something to do.
final class LargePiece {
  /// Bytes from which on a piece is large. Smaller ones are brought to the disk together
  /// (`EarlySync`): to begin with them one at a time gained nothing.
  static let least = 1 << 20

  private let file: Descriptor
  private let place: Range<UInt64>

  /// Begins to bring a piece to the disk. Nothing when there is no descriptor left to wait by: the
  /// piece goes its way all the same.
  init?(at place: Range<UInt64>, in file: borrowing Descriptor) throws(SystemError) {
    try file.beginSync(place)
    guard let second = try? file.duplicate() else { return nil }
    self.place = place
    self.file = second
  }

  /// Waits until it is on the disk, and lets it leave the memory. It is as durable then as all else:
  /// by the sync of the volume when all is written.
  func finish() throws(SystemError) {
    try file.endSync(place)
    file.willNotBeReadSoon(place)
  }
}
