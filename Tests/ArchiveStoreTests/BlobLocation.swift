import Codecs

@testable import ArchiveStore

extension RepositoryReader {
  /// The location of a blob, ordered by pack, frame and offset.
  struct BlobLocation: Hashable, Comparable {
    let pack: Digest
    let frame: Int
    /// The offset in the decoded frame.
    let offset: Int

    static func < (left: Self, right: Self) -> Bool {
      (left.pack, left.frame, left.offset) < (right.pack, right.frame, right.offset)
    }
  }

  /// Returns the location of a blob, or nil if no index names it.
  func locate(_ blob: BlobID) -> BlobLocation? {
    index.set.find(blob).map {
      BlobLocation(pack: $0.pack, frame: $0.frameNumber, offset: $0.offset)
    }
  }
}
