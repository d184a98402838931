internal import CZstd

/// The header and the checksum of one whole zstd frame (RFC 8878, section 3.1.1).
package struct ZstdFrame: Sendable, Hashable {
  /// The content size that the frame claims, in bytes.
  package let contentSize: Int
  /// The last four bytes: the low half of the content's XXH64, which a seek table may repeat.
  package let checksum: UInt32

  /// Parses one whole frame without decoding it.
  ///
  /// - Throws: if it is not a frame, has no content size or checksum, is truncated, or data follows
  ///   it.
  package init(_ frame: Span<UInt8>) throws(CodecError) {
    guard frame.count >= 6, Self.word(frame, at: 0) == ZSTD_MAGICNUMBER else {
      throw CodecError(
        .malformed, in: .zstd, reason: "it does not begin with a frame header", at: .offset(0))
    }
    let (size, stored) = unsafe frame.withUnsafeBytes { bytes in
      unsafe (
        ZSTD_getFrameContentSize(bytes.baseAddress, bytes.count),
        ZSTD_findFrameCompressedSize(bytes.baseAddress, bytes.count)
      )
    }
    guard size != UInt64.max - 1, ZSTD_isError(stored) == 0 else {
      throw CodecError(.truncated, in: .zstd, reason: "the frame is damaged or truncated")
    }
    guard size != UInt64.max else {
      throw CodecError(.unsupported, in: .zstd, reason: "it has no content size")
    }
    guard stored == frame.count else {
      throw CodecError(.malformed, in: .zstd, reason: "data follows the frame", at: .offset(stored))
    }
    guard frame[4] & 0x04 != 0 else {
      throw CodecError(.unsupported, in: .zstd, reason: "it has no checksum", at: .offset(4))
    }
    guard let contentSize = Int(exactly: size) else {
      throw CodecError(.limit, in: .zstd, reason: "it claims \(size) bytes of content")
    }
    self.contentSize = contentSize
    checksum = Self.word(frame, at: stored - 4)
  }

  private static func word(_ bytes: Span<UInt8>, at place: Int) -> UInt32 {
    LittleEndian.word32(bytes, at: place)
  }
}
