internal import Codecs
package import SystemIO

/// A request of the S3 API before it is signed.
package struct S3Request: Sendable {
  package var method: HTTPRequest.Method
  /// The key of the object; empty for the bucket.
  package var key: ByteString
  /// The parameters, not encoded.
  package var query: [(name: String, value: String)]
  /// The headers besides those of the signature.
  package var headers: [(name: String, value: String)]
  package var body: HTTPBody
  /// The maximum number of bytes of the answer's body.
  package var limit: Int
  /// Whether the answer may begin with success and have an error in its body.
  package var canFailLate = false
  /// Whether the MD5 of the body is sent in addition to its SHA-256. There is none without a body.
  var sendsMD5: Bool
  /// A SHA-256 that is sent instead of that of the body, as hexadecimal digits, to test whether the
  /// store compares them; nil for the right one.
  var wrongSHA256: String?

  /// Creates a request.
  package init(
    _ method: HTTPRequest.Method, key: ByteString = "",
    query: [(name: String, value: String)] = [], headers: [(name: String, value: String)] = [],
    body: HTTPBody = .none, limit: Int = 64 << 10
  ) {
    self.method = method
    self.key = key
    self.query = query
    self.headers = headers
    self.body = body
    self.limit = limit
    if case .none = body { sendsMD5 = false } else { sendsMD5 = true }
  }
}

/// The hashes of a request's body, by which a store detects one that was damaged in transit.
struct S3Payload: Sendable {
  /// The SHA-256 as hexadecimal digits, which is signed.
  let sha256: String
  /// The MD5 in Base64 (RFC 1864); nil if it is not sent, or there is no body.
  let md5: String?

  /// Reads the body of a request and hashes it.
  init(_ request: S3Request) throws(SystemError) {
    var sha256 = MessageDigest(.sha256)
    var md5 = request.sendsMD5 ? MessageDigest(.md5) : nil
    var portion: [UInt8] = []
    var offset: UInt64 = 0
    while offset < request.body.count {
      try request.body.read(count: 1 << 20, at: offset, into: &portion)
      if portion.isEmpty { throw .replaced("the body of a request") }
      sha256.update(portion.span)
      md5?.update(portion.span)
      offset += UInt64(portion.count)
    }
    let found = Hex.encode(sha256.finish())
    self.sha256 = request.wrongSHA256 ?? found
    switch consume md5 {
    case .some(let sum): self.md5 = Base64.encode(sum.finish())
    case .none: self.md5 = nil
    }
  }
}
