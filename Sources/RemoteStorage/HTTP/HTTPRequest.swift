package import SystemIO

/// A request of HTTP/1.1 (RFC 9110).
package struct HTTPRequest: Sendable {
  /// The methods that object stores use.
  package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case post = "POST"
    case delete = "DELETE"
  }

  package var method: Method
  /// The URL, sent unchanged: nothing in it is encoded or normalized.
  package var url: String
  /// The headers other than those of the connection, the length and the host.
  package var headers: [(name: String, value: String)]
  package var body: HTTPBody
  /// The maximum number of bytes of the answer's body.
  package var limit: Int

  /// Creates a request.
  package init(
    _ method: Method, url: String, headers: [(name: String, value: String)] = [],
    body: HTTPBody = .none, limit: Int = 1 << 20
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.limit = limit
  }
}

/// The body of a request.
package enum HTTPBody: Sendable {
  case none
  case bytes([UInt8])
  /// A range of a file, read while it is sent.
  case file(SpoolFile, offset: UInt64, count: UInt64)

  /// The number of bytes.
  package var count: UInt64 {
    switch self {
    case .none: 0
    case .bytes(let bytes): UInt64(bytes.count)
    case .file(_, _, let count): count
    }
  }

  /// Replaces the content of `portion` with at most `count` bytes from `offset`. Only a truncated
  /// file has fewer than the body's count.
  package func read(
    count wanted: Int, at offset: UInt64, into portion: inout [UInt8]
  ) throws(SystemError) {
    let rest = count > offset ? count - offset : 0
    let wanted = Int(min(UInt64(wanted), rest))
    portion.removeAll(keepingCapacity: true)
    switch self {
    case .none: break
    case .bytes(let bytes): portion.append(contentsOf: bytes[Int(offset)..<(Int(offset) + wanted)])
    case .file(let file, let start, _):
      try file.descriptor.read(count: wanted, at: start + offset, into: &portion)
    }
  }
}

/// An open file that several requests may read at the same time.
package final class SpoolFile: Sendable {
  package let descriptor: Descriptor

  /// Takes over a descriptor, which is closed at the end of this object's lifetime.
  package init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// The status and the headers of an answer. Its body is in the caller's buffer.
package struct HTTPResponse: Sendable {
  /// 100 to 599.
  package let status: Int
  /// The headers in their order, with names in lower case.
  package let headers: [(name: String, value: String)]

  /// Creates a response.
  package init(status: Int, headers: [(name: String, value: String)] = []) {
    self.status = status
    self.headers = headers
  }

  /// Whether the request succeeded.
  package var isSuccess: Bool { (200...299).contains(status) }

  /// Returns the value of the first header with a name in lower case.
  package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}
