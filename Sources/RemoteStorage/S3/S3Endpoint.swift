internal import Codecs
package import SystemIO

/// The server of a bucket, and the form of its URLs.
package struct S3Endpoint: Sendable, Hashable {
  /// `https` or `http`.
  package let scheme: String
  /// The host, with the bucket before it unless it is in the path, and the port unless it is the
  /// scheme's own: the value of the header `Host`.
  package let host: String
  /// The encoded path of the bucket, ending with a slash.
  package let root: String
  package let bucket: String

  /// Creates the endpoint of a bucket.
  ///
  /// Without `isPathStyle` the bucket is in the host for AWS and in the path for others, because
  /// not all of them have host names for their buckets. A name that no host can have, or one with a
  /// dot, which the certificate of AWS does not cover, is always in the path.
  ///
  /// - Parameter url: The URL of the server: `https://HOST:PORT` or `http://HOST:PORT`; nil for
  ///   AWS.
  /// - Throws: if the URL has another form.
  package init(
    bucket: String, region: String, url: String? = nil, isPathStyle: Bool? = nil
  ) throws(S3Failure) {
    let domain = region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
    let url = url ?? "https://s3.\(region).\(domain)"
    let parts = try Self.parts(url)
    let isName = Self.isHostName(bucket, scheme: parts.scheme)
    let isAddress = parts.host.first == "[" || parts.host.allSatisfy { $0 == "." || $0.isNumber }
    let isAmazon = [".amazonaws.com", ".amazonaws.com.cn"].contains { parts.host.hasSuffix($0) }
    let isInPath = !isName || isAddress || isPathStyle ?? !isAmazon
    scheme = parts.scheme
    host = (isInPath ? "" : bucket + ".") + parts.host + (parts.port.map { ":\($0)" } ?? "")
    root = isInPath ? "/" + PercentEncoding.encode(bucket.utf8) + "/" : "/"
    self.bucket = bucket
  }

  /// Returns the encoded path of an object, or of the bucket for an empty key.
  package func path(_ key: ByteString) -> String {
    if key.isEmpty, root.utf8.count > 1 { return String(root.dropLast()) }
    return root + PercentEncoding.encode(key.bytes, keepsSlashes: true)
  }

  /// Returns the URL of a path and parameters.
  package func url(_ path: String, query: String) -> String {
    "\(scheme)://\(host)\(path)\(query.isEmpty ? "" : "?" + query)"
  }

  private static func parts(
    _ url: String
  ) throws(S3Failure) -> (scheme: String, host: String, port: Int?) {
    let fault = S3Failure(.endpoint(url))
    let pieces = url.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    guard pieces.count == 2 else { throw fault }
    let scheme = pieces[0].lowercased()
    guard scheme == "https" || scheme == "http" else { throw fault }
    let authority = pieces[1].hasSuffix("/") ? pieces[1].dropLast() : pieces[1]
    let (host, port) = try split(authority, fault)
    guard !host.isEmpty, host.utf8.allSatisfy(isHostByte) else { throw fault }
    // The header `Host` has no port if it is the usual one.
    return (scheme, host, port == (scheme == "https" ? 443 : 80) ? nil : port)
  }

  /// Splits the port from a host, which may be an IPv6 address in brackets.
  private static func split(
    _ authority: Substring, _ fault: S3Failure
  ) throws(S3Failure) -> (host: String, port: Int?) {
    let bracket = authority.lastIndex(of: "]")
    guard let colon = authority.lastIndex(of: ":"), bracket.map({ $0 < colon }) ?? true else {
      return (authority.lowercased(), nil)
    }
    let digits = authority[authority.index(after: colon)...]
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(digits),
      (1...65535).contains(port)
    else { throw fault }
    return (authority[..<colon].lowercased(), port)
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
      UInt8(ascii: "["), UInt8(ascii: "]"):
      true
    default: false
    }
  }

  /// Whether a bucket's name can be the first part of a host.
  private static func isHostName(_ bucket: String, scheme: String) -> Bool {
    let bytes = Array(bucket.utf8)
    let isPlain = bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"):
        true
      case UInt8(ascii: "."): scheme == "http"
      default: false
      }
    }
    return isPlain && (3...63).contains(bytes.count) && bytes.first != UInt8(ascii: "-")
      && bytes.last != UInt8(ascii: "-")
  }
}
