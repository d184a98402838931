internal import Codecs
package import SystemIO

/// An access key with its secret. Its descriptions contain neither.
package final class S3Credentials: Sendable {
  /// The public part, which names the user. It is in the header of each request.
  let accessKey: String
  /// The secret access key.
  let secret: SecretBytes
  /// The session token of temporary credentials, which is sent with each request; empty if there is
  /// none.
  private let tokenBytes: SecretBytes
  /// The time at which they expire, or nil if they do not expire or it is unknown.
  package let expiration: Timestamp?

  /// Creates credentials. The texts are copied.
  package init(
    accessKey: String, secret: String, token: String? = nil, expiration: Timestamp? = nil
  ) {
    self.accessKey = accessKey
    self.secret = SecretBytes(copying: Array(secret.utf8).span)
    tokenBytes = SecretBytes(copying: Array((token ?? "").utf8).span)
    self.expiration = expiration
  }

  /// The session token, or nil if there is none.
  var token: String? {
    guard tokenBytes.count > 0 else { return nil }
    return tokenBytes.withBytes { bytes in
      String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
    }
  }

  /// Returns whether they are refused from a time on, or soon.
  func expires(within seconds: Int64, of now: Timestamp) -> Bool {
    guard let expiration else { return false }
    return expiration.seconds < now.seconds + seconds
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "S3 credentials" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}
