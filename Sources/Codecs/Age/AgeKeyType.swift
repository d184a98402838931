/// The types of identities and recipients that `age` supports and this module does not. Each is
/// refused by its name (decision 0025): the error is not the one for a misspelled key.
enum AgeKeyType {
  /// Throws `unsupported` for a recipient of another type, and `key` for an identity, which is a
  /// secret in the wrong place.
  static func refuseUnsupportedRecipient(_ text: String) throws(AgeError) {
    if text.uppercased().hasPrefix("AGE-") {
      throw AgeError(.key, "it is an identity, which is secret, and not a recipient")
    }
    if isSSH(text) { throw sshKey }
    if text.hasPrefix("age1pq1") {
      throw postQuantum("recipient (age1pq1…, MLKEM768-X25519)")
    }
    if text.hasPrefix("age1tagpq1") {
      throw postQuantum("recipient (age1tagpq1…, MLKEM768-P256)")
    }
    if text.hasPrefix("age1tag1") {
      throw AgeError(.unsupported, "tagged recipients (age1tag1…) are not supported")
    }
  }

  /// Throws `unsupported` for the prefix of a plugin's recipient, whose checksum was right.
  static func refusePlugin(prefix: String) throws(AgeError) {
    guard prefix.hasPrefix("age1") else { return }
    throw AgeError(
      .unsupported, "recipients of the plugin '\(prefix.dropFirst(4))' are not supported")
  }

  /// Throws `unsupported` for an identity of another type, and `key` for any other text.
  static func refuseUnsupportedIdentity(_ text: Span<UInt8>) throws(AgeError) {
    if text.starts(with: "AGE-SECRET-KEY-PQ-1") {
      throw postQuantum("identity (AGE-SECRET-KEY-PQ-1…, MLKEM768-X25519)")
    }
    if text.starts(with: "AGE-PLUGIN-") {
      throw AgeError(.unsupported, "identities of plugins (AGE-PLUGIN-…) are not supported")
    }
    if text.starts(with: "age1") {
      throw AgeError(.key, "it is a recipient, which decrypts nothing, and not an identity")
    }
    if text.starts(with: "-----BEGIN AGE") || text.starts(with: "age-encryption.org/") {
      throw AgeError(.key, "it is an encrypted file: decrypt it first")
    }
    if text.starts(with: "-----BEGIN ") { throw sshKey }
  }

  /// The names of known stanzas, for the error that no identity matches. Returns nil for a type
  /// that is supported or unknown.
  static func unsupportedStanza(_ type: String) -> String? {
    switch type {
    case "mlkem768x25519": "post-quantum (mlkem768x25519)"
    case "p256tag", "mlkem768p256tag": "tagged (\(type))"
    case "ssh-rsa", "ssh-ed25519": "SSH (\(type))"
    case "piv-p256", "yubikey", "tpm-ecc": "plugin (\(type))"
    default: nil
    }
  }

  private static func isSSH(_ text: String) -> Bool {
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"].contains { text.hasPrefix($0) }
  }

  private static var sshKey: AgeError {
    AgeError(.unsupported, "SSH keys are not supported as recipients or identities")
  }

  private static func postQuantum(_ subject: String) -> AgeError {
    AgeError(.unsupported, "the post-quantum \(subject) is not supported: libsodium has no ML-KEM")
  }
}

extension Span<UInt8> {
  /// Whether the bytes begin with those of a text.
  func starts(with text: String) -> Bool {
    let wanted = text.utf8
    return count >= wanted.count && zip(indices, wanted).allSatisfy { self[$0] == $1 }
  }
}
