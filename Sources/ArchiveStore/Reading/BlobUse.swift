package import Codecs

/// A wanted data blob and its use: a range of one of the caller's items, such as a file.
package struct BlobUse: Hashable, Sendable {
  package let digest: Digest
  /// The expected length of the blob in bytes.
  package let length: UInt32
  /// The caller's item that needs the blob.
  package let item: UInt32
  /// The offset in the item.
  package let offset: UInt64

  /// Creates a use.
  package init(digest: Digest, length: UInt32, item: UInt32, offset: UInt64) {
    self.digest = digest
    self.length = length
    self.item = item
    self.offset = offset
  }
}

/// A use whose frame was read.
package struct DeliveredBlob: Sendable {
  package let use: BlobUse
  /// The range of the blob in the delivered bytes, or nil if they do not match the blob.
  package let range: Range<Int>?

  /// Creates a delivered blob.
  package init(use: BlobUse, range: Range<Int>?) {
    self.use = use
    self.range = range
  }
}

/// A receiver of blobs, frame by frame. Each thread has its own.
package protocol BlobSink: SendableMetatype {
  /// Receives the wanted blobs of a decoded frame, sorted by item and then by offset. The bytes may
  /// include other frames and are valid only during the call. An error ends the delivery.
  func take(_ blobs: [DeliveredBlob], of frame: [UInt8]) throws

  /// Receives the uses whose frame cannot be read, or that no index names.
  func miss(_ uses: [BlobUse], _ error: StoreError) throws
}
