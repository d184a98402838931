internal import CZstd

/// What the header and the end of one whole zstd frame say (RFC 8878, section 3.1.1).
public struct ZstdFrame: Sendable, Hashable {
  /// How many bytes of content the frame claims to have.
  public let contentSize: Int
  /// The last four bytes: the low half of the content's XXH64, which a seek table may repeat.
  public let checksum: UInt32

  /// Looks at one whole frame without decoding it.
  ///
  /// Throws where it is no such frame, has no content size or no checksum, ends early, or where
  /// something follows it.
  public init(_ frame: Span<UInt8>) throws(CodecError) {
    guard frame.count >= 6, Self.word(frame, at: 0) == ZSTD_MAGICNUMBER else {
      throw CodecError(.malformed, .zstd, "it does not begin as a frame does", at: .offset(0))
    }
    let (size, stored) = unsafe frame.withUnsafeBytes { bytes in
      unsafe (
        ZSTD_getFrameContentSize(bytes.baseAddress, bytes.count),
        ZSTD_findFrameCompressedSize(bytes.baseAddress, bytes.count)
      )
    }
    guard size != UInt64.max - 1, ZSTD_isError(stored) == 0 else {
      throw CodecError(.truncated, .zstd, "the frame is damaged, or ends early")
    }
    guard size != UInt64.max else {
      throw CodecError(.unsupported, .zstd, "it does not say how much content it has")
    }
    guard stored == frame.count else {
      throw CodecError(.malformed, .zstd, "something follows the frame", at: .offset(stored))
    }
    guard frame[4] & 0x04 != 0 else {
      throw CodecError(.unsupported, .zstd, "it has no checksum", at: .offset(4))
    }
    guard let contentSize = Int(exactly: size) else {
      throw CodecError(.limit, .zstd, "it claims \(size) bytes of content")
    }
    self.contentSize = contentSize
    checksum = Self.word(frame, at: stored - 4)
  }

  private static func word(_ bytes: Span<UInt8>, at place: Int) -> UInt32 {
    LittleEndian.word32(bytes, at: place)
  }
}
