package import ArchiveStore
internal import DeviceTransaction
package import SystemIO

/// The space that a restore needs on the volume of its target.
extension RestorePlan {
  /// The hint for a volume without enough room.
  package static let roomHint =
    "free space on the volume, or restore a part with '--app', '--class' or 'SNAP:PATH'"

  /// Returns the space needed and the room on the volume, read from the system with each call.
  /// Empty if nothing is to be done.
  package func volumeNeeds(from reader: RepositoryReader) -> [VolumeNeed] {
    VolumeNeeds(self, from: reader).all
  }

  /// Returns the minimum space that the restore takes: all new and replacing entries are staged
  /// before the first one is put in place. A directory counts no bytes, because many file systems
  /// keep it in its inode; a file with piece lists counts as if it had no holes.
  package func need(on space: VolumeSpace) -> (bytes: UInt64, entries: UInt64) {
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

  /// Returns the size of the holes in files with piece lists; nil if a list cannot be read, or if
  /// there are too many pieces to read in advance.
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

  /// Several TiB of ordinary files, or 16 GiB of databases; about a second of work.
  private static let mostPieces = 1 << 20

  private struct TooManyPieces: Error {}
}

extension DeviceRestorePlan {
  /// Returns the space needed and the room on the volumes, read from the system with each call.
  package func volumeNeeds(from reader: RepositoryReader) -> [VolumeNeed] {
    VolumeNeeds(self, from: reader).all
  }
}
