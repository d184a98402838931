internal import Codecs
internal import SystemIO

/// Compresses a frame's plain bytes, each frame decoded and compared before it is given.
///
/// Holds about 10 MB once it has seen a frame of 4 MiB; each thread needs its own.
struct FrameEncoder: ~Copyable {
  /// Higher levels cost more time than they save bytes on app data.
  static let usual = ZstdMethod(level: 2, matcher: .wideFast)
  /// For large files of which a sample shows that only repeats make them smaller, as databases whose
  /// values are photos, keys or numbers: of a database's rows 0.97 of the bytes, in less time.
  static let repeats = ZstdMethod(level: 2, matcher: .wideFull, storesLiterals: true)
  /// For what a sample shows not to compress.
  static let cheapest = ZstdMethod(level: -1, matcher: .wideFast)
  /// A smaller frame is not asked whether only repeats make it smaller: it costs too much beside it.
  static let largeFrame = 1 << 20

  private var compressor: ZstdCompressor
  private var decompressor: ZstdDecompressor
  private var probe: CompressionProbe
  private var check: [UInt8] = []
  /// The bytes of the frame given last, for its memory.
  private var stored: [UInt8] = []

  init() throws(StoreError) {
    let compressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdCompressor(Self.usual)
    }
    let decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor()
    }
    let probe = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try CompressionProbe()
    }
    self.compressor = compressor
    self.decompressor = decompressor
    self.probe = probe
  }

  /// Compresses a frame.
  mutating func encode(_ frame: PlainFrame) throws(StoreError) -> PackFrame {
    PackFrame(
      stored: try encode(frame.bytes, isOneFile: frame.members == 1), plain: frame.bytes.count,
      blobs: frame.blobs)
  }

  /// The stored bytes of a frame. They are to be let go of before the next frame, which then takes
  /// their memory.
  private mutating func encode(_ plain: [UInt8], isOneFile: Bool) throws(StoreError) -> [UInt8] {
    let method = method(of: plain.span, isOneFile: isOneFile)
    var stored: [UInt8] = []
    swap(&stored, &self.stored)
    stored.removeAll(keepingCapacity: true)
    do {
      try compressor.compress(plain.span, by: method, appendingTo: &stored)
      check.removeAll(keepingCapacity: true)
      try decompressor.decompress(stored.span, limit: plain.count, appendingTo: &check)
    } catch { throw .codec(error, "a frame") }
    guard check.span.hasSameBytes(as: plain.span) else {
      throw StoreError(
        .system, "store", "a frame", "it decodes to other bytes than were compressed",
        hint: "check the machine's memory")
    }
    self.stored = stored
    return stored
  }

  private mutating func method(of plain: Span<UInt8>, isOneFile: Bool) -> ZstdMethod {
    let looksForRepeats = isOneFile && plain.count >= Self.largeFrame
    return switch probe.ask(plain, looksForRepeats: looksForRepeats) {
    case .all: Self.usual
    case .repeats: Self.repeats
    case .nothing: Self.cheapest
    }
  }
}
