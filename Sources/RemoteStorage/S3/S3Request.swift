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
  }
}

/// The hashes of a request's body, with which a store refuses one that was damaged on its way.
struct S3Payload: Sendable {
  /// The SHA-256 as hexadecimal digits, which is signed.
  let sha256: String
  /// The MD5 in Base64 (RFC 1864), or nil for no body.
  let md5: String?

  /// Reads a body and hashes it.
  init(_ body: HTTPBody) throws(SystemError) {
    var sha256 = MessageDigest(.sha256)
    var md5 = MessageDigest(.md5)
    var portion: [UInt8] = []
    var offset: UInt64 = 0
    while offset < body.count {
      try body.read(count: 1 << 20, at: offset, into: &portion)
      if portion.isEmpty { throw .replaced("the body of a request") }
      sha256.update(portion.span)
      md5.update(portion.span)
      offset += UInt64(portion.count)
    }
    self.sha256 = Hex.encode(sha256.finish())
    let sum = Base64.encode(md5.finish())
    if case .none = body { self.md5 = nil } else { self.md5 = sum }
  }
}
