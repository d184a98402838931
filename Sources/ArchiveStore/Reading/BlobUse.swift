public import Codecs

/// A blob of data that is wanted, and what for: a run of some item of the caller's, as a file.
public struct BlobUse: Hashable, Sendable {
  public let digest: Digest
  /// Bytes that the blob must have.
  public let length: UInt32
  /// Which of the caller's items it is for.
  public let item: UInt32
  /// First byte in the item.
  public let offset: UInt64

  /// Makes a use.
  public init(digest: Digest, length: UInt32, item: UInt32, offset: UInt64) {
    self.digest = digest
    self.length = length
    self.item = item
    self.offset = offset
  }
}

/// A use that was met in its frame.
public struct DeliveredBlob: Sendable {
  public let use: BlobUse
  /// Where its bytes lie in what is handed over; nothing when what lies there is not the blob.
  public let range: Range<Int>?

  /// Makes one.
  public init(use: BlobUse, range: Range<Int>?) {
    self.use = use
    self.range = range
  }
}

/// Who takes blobs, frame by frame; each thread has one of its own.
public protocol BlobSink: SendableMetatype {
  /// Takes what is wanted of a decoded frame, sorted by item and then by the place in it. The bytes,
  /// which may be those of other frames, too, are good for the call only. An error ends the delivery.
  func take(_ blobs: [DeliveredBlob], of frame: [UInt8]) throws

  /// Is told of uses whose frame cannot be read, or that no index names.
  func miss(_ uses: [BlobUse], _ error: StoreError) throws
}
