public import ArchiveStore
internal import SystemIO

/// What a restore writes, for the volume that it is written on.
extension RestorePlan {
  /// What can be done where there is no room.
  public static let roomHint =
    "free space there, or restore a part: '--app', '--class' or 'SNAP:PATH'"

  /// What is to be written, and what the volume has room for: a look at the system, each time it is asked
  /// for. Nothing where nothing is to be done.
  public func volumeNeeds(from reader: RepositoryReader) -> [VolumeNeed] {
    VolumeNeeds(self, from: reader).all
  }

  /// What of a volume is taken, at least: all that is new or gives way is staged before the first of it
  /// gets its place. A directory takes no bytes, since many file systems keep it in its inode; a file with
  /// lists counts as if it had no holes.
  func need(on space: VolumeSpace) -> (bytes: UInt64, entries: UInt64) {
    let isMade = tree.directoriesWithWork()
    var (bytes, entries) = (UInt64(0), StagingDirectory.entries)
    for number in tree.entries.indices.dropFirst() {
      let entry = tree.entries[number]
      if entry.kind == .directory {
        if isMade[number] { entries += 1 }
      } else if entry.action.isWritten, tree.leader(number) == nil {
        entries += 1
        bytes.addClamping(space.taken(by: tree.stored(number)))
      }
    }
    return (bytes, entries)
  }

  /// How much less it is for the holes that only lists tell of; nothing where these cannot be read, or
  /// are more than a look beforehand is worth.
  func holesInLists(on space: VolumeSpace, from reader: RepositoryReader) -> UInt64? {
    var (holes, left) = (UInt64(0), Self.mostPieces)
    for number in tree.entries.indices {
      let entry = tree.entries[number]
      guard entry.level > 0, entry.action.isWritten, tree.leader(number) == nil else { continue }
      var stored: UInt64 = 0
      do {
        try reader.forEachPiece(tree.pieces(number), level: entry.level) { _, piece in
          left -= 1
          if left < 0 { throw TooManyPieces() }
          if piece.isBlob { stored.addClamping(piece.length) }
        }
      } catch { return nil }
      let (whole, rest) = (space.taken(by: entry.size), space.taken(by: stored))
      holes.addClamping(whole > rest ? whole - rest : 0)
    }
    return holes
  }

  /// Some TiB of usual files, 16 GiB of a database; a second's work.
  private static let mostPieces = 1 << 20

  private struct TooManyPieces: Error {}
}

extension DeviceRestorePlan {
  /// What is to be written, and what the volumes have room for: a look at the system, each time it is
  /// asked for.
  public func volumeNeeds(from reader: RepositoryReader) -> [VolumeNeed] {
    VolumeNeeds(self, from: reader).all
  }
}
