internal import ArchiveStore
package import Codecs
package import SystemIO

/// Signature Version 4 of Amazon Web Services for requests whose payload is sent as a whole. Pure:
/// the same parts result in the same text.
///
/// Source: Amazon S3 API Reference, "Signature Calculations for the Authorization Header:
/// Transferring Payload in a Single Chunk (AWS Signature Version 4)".
package struct SignatureV4: Sendable {
  /// The region, which is part of the key.
  package let region: String
  /// The service, which is part of the key.
  package let service: String
  /// The time in the form `20130524T000000Z`.
  package let moment: String

  /// The parts of a request that are signed.
  package struct Request: Sendable {
    package let method: String
    /// The path, encoded.
    package let path: String
    /// The parameters, not encoded, in any order.
    package let query: [(name: String, value: String)]
    /// The headers, all of which are signed: among them `host`, `x-amz-date` and
    /// `x-amz-content-sha256`.
    package let headers: [(name: String, value: String)]
    /// The SHA-256 of the body as hexadecimal digits.
    package let payload: String

    /// Creates the parts.
    package init(
      method: String, path: String, query: [(name: String, value: String)],
      headers: [(name: String, value: String)], payload: String
    ) {
      self.method = method
      self.path = path
      self.query = query
      self.headers = headers
      self.payload = payload
    }
  }

  /// Creates the signature for a time and a place.
  package init(region: String, service: String = "s3", time: Timestamp) {
    self.region = region
    self.service = service
    let text = Timestamp(seconds: time.seconds).rfc3339
    moment = text.filter { $0 != "-" && $0 != ":" }
  }

  private var date: Substring { moment.prefix(8) }

  /// The date, region and service for which a key is valid.
  package var scope: String { "\(date)/\(region)/\(service)/aws4_request" }

  /// Returns the value of the header `Authorization`.
  package func authorization(
    for request: Request, accessKey: String, secret: borrowing SecretBytes
  ) -> String {
    let names = Self.canonical(request.headers).map(\.name).joined(separator: ";")
    let signature = signature(of: stringToSign(for: request), secret: secret)
    return "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(scope),SignedHeaders=\(names),"
      + "Signature=\(signature)"
  }

  /// Returns the canonical form of a request.
  package static func canonicalRequest(_ request: Request) -> String {
    let headers = canonical(request.headers)
    var text = request.method + "\n" + request.path + "\n" + query(request.query) + "\n"
    for header in headers { text += header.name + ":" + header.value + "\n" }
    return text + "\n" + headers.map(\.name).joined(separator: ";") + "\n" + request.payload
  }

  /// Returns the text that is signed.
  package func stringToSign(for request: Request) -> String {
    let canonical = Self.hash(Self.canonicalRequest(request).utf8)
    return "AWS4-HMAC-SHA256\n\(moment)\n\(scope)\n\(canonical)"
  }

  /// Returns the parameters encoded and sorted, as they are signed and sent.
  package static func query(_ parameters: [(name: String, value: String)]) -> String {
    parameters.map {
      (PercentEncoding.encode($0.name.utf8), PercentEncoding.encode($0.value.utf8))
    }
    .sorted { $0 < $1 }
    .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }

  /// Returns the SHA-256 of bytes as hexadecimal digits.
  package static func hash(_ bytes: some Sequence<UInt8>) -> String {
    Hex.encode(MessageDigest.digest(of: Array(bytes).span, .sha256))
  }

  /// Returns headers in lower case, sorted, without white space around values and with single
  /// spaces inside them.
  private static func canonical(
    _ headers: [(name: String, value: String)]
  ) -> [(name: String, value: String)] {
    headers.map { header in
      let words = header.value.split { $0 == " " || $0 == "\t" }
      return (header.name.lowercased(), words.joined(separator: " "))
    }.sorted { $0.name < $1.name }
  }

  /// Returns the signature: an HMAC whose key is derived from the secret by the parts of the scope.
  private func signature(of text: String, secret: borrowing SecretBytes) -> String {
    let seed = secret.withBytes { bytes in
      var prefixed = Array("AWS4".utf8)
      prefixed.reserveCapacity(4 + bytes.count)
      for index in bytes.indices { prefixed.append(bytes[index]) }
      defer { prefixed.wipe() }
      return MessageCode.hmac(key: prefixed.span, message: Array(date.utf8).span)
    }
    let regional = Self.code(region, key: seed)
    let serving = Self.code(service, key: regional)
    let key = Self.code("aws4_request", key: serving)
    return Self.code(text, key: key).withBytes { bytes in
      Hex.encode(bytes.indices.map { bytes[$0] })
    }
  }

  private static func code(_ message: String, key: borrowing SecretBytes) -> SecretBytes {
    key.withBytes { MessageCode.hmac(key: $0, message: Array(message.utf8).span) }
  }
}
