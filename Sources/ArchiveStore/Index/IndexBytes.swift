internal import Codecs
internal import SystemIO

/// The bytes of an index object, either in memory that can spill or mapped from this host's copy.
enum IndexBytes: Sendable {
  case memory(SpillableArray<UInt8>)
  case mapped(MappedFile)

  var count: Int {
    switch self {
    case .memory(let bytes): bytes.count
    case .mapped(let file): file.count
    }
  }

  @inline(__always)
  func withBytes<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    switch self {
    case .memory(let bytes):
      return try bytes.withSpan { span throws(Failure) in try body(span.bytes) }
    case .mapped(let file): return try file.withBytes(body)
    }
  }
}
