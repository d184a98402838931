internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// A file of identities: the text that `age -i` reads, or that text encrypted with a passphrase, as
/// `age -p` writes it, with or without armor.
struct IdentityFile {
  let path: ByteString

  /// Returns the identities, at least one.
  ///
  /// The passphrase of an encrypted file is read from the source that the environment names, or
  /// asked for on a terminal. The options for a key file's cannot be combined with an identity.
  func read(_ console: Console) throws -> [AgeIdentity] {
    Host.disableCoreDumps()
    var stored = try SecretFile.read(
      path, holding: "identity", limit: AgeKeyList.maximumCount, console)
    defer { stored.wipe() }
    do {
      guard let file = try Self.encryptedFile(stored) else {
        return try AgeKeyList.identities(stored.span)
      }
      var text = try decrypt(file, console)
      defer { text.wipe() }
      return try AgeKeyList.identities(text.span)
    } catch let error as AgeError {
      throw OperationError(
        .failed, code: .invalidInput, "read the identity from", subject: path,
        reason: error.reason, hint: error.hint)
    }
  }

  /// Returns the binary age file that a file contains; nil for a text with identities.
  private static func encryptedFile(_ stored: [UInt8]) throws(AgeError) -> [UInt8]? {
    if AgeArmor.isArmored(stored.span) { return try AgeArmor.decode(stored) }
    return stored.starts(with: "age-encryption.org/".utf8) ? stored : nil
  }

  private func decrypt(_ file: [UInt8], _ console: Console) throws -> [UInt8] {
    guard try AgeHeader(file.span).hasPassphrase else {
      throw OperationError(
        .failed, code: .invalidInput, "read the identity from", subject: path,
        reason: "it is encrypted for a recipient, not with a passphrase",
        hint: "decrypt it with 'age -d', and use the result")
    }
    let input = KeyOptions.environmentPassphrase ?? .terminal
    guard input != .terminal || console.canAsk else { throw passphraseRequired }
    let read = try KeyOptions.passphrase(of: path.description, from: input, console)
    guard let passphrase = read else { throw passphraseRequired }
    do throws(AgeError) {
      return try AgeFile(opening: file.span, with: passphrase).decrypt(file.span)
    } catch {
      guard error.kind == .noMatch else { throw error }
      throw StoreError(
        .wrongKey, "decrypt", subject: path.description, reason: error.reason,
        hint: input.variable.map { "check the passphrase, which comes from $\($0)" }
          ?? "check the passphrase")
    }
  }

  private var passphraseRequired: StoreError {
    StoreError(
      .keyRequired, "decrypt", subject: path.description,
      reason: "it is encrypted, and no passphrase was given",
      hint: "set SANDBOXCTL_PASSPHRASE_FILE or SANDBOXCTL_PASSPHRASE_COMMAND for its passphrase")
  }
}
