public import Codecs

/// The signature of a snapshot: line 2 of its content (docs/repository-format.md, "Signatures").
public enum SnapshotSignature: Hashable, Sendable {
  /// There is no line 2.
  case absent
  /// It is the signature of line 1 by this signer, who need not be trusted.
  case valid(Signer)
  /// It is a signature, but not one of line 1 in this repository by the signer that it names.
  case wrong
  /// Line 2 is not a signature of this version.
  case malformed

  /// The signer of a valid signature, or nil if there is none.
  public var signer: Signer? { if case .valid(let signer) = self { signer } else { nil } }
}

extension SnapshotSignature {
  /// The first line of each signed text, so that a signature for another purpose cannot be used for
  /// a snapshot.
  private static let purpose = "sandboxctl snapshot v1"
  /// The maximum size of line 2, in bytes.
  private static let limit = 4096
  private static let newline = UInt8(ascii: "\n")

  /// Returns the signed text: the purpose, the repository's id and line 1, with a line feed after
  /// each of the first two.
  private static func message(_ line: some Sequence<UInt8>, in repository: Digest) -> [UInt8] {
    Array("\(purpose)\n\(repository.hex)\n".utf8) + line
  }

  /// Returns line 2, without its line feed.
  static func encode(_ line: [UInt8], of repository: Digest, signedBy key: SigningKey) -> [UInt8] {
    let signature = key.sign(message(line, in: repository))
    let json: JSON = [
      "signer": .string(key.signer.description), "signature": .string(signature.base64),
    ]
    return json.compactBytes
  }

  /// Reads and verifies the signature in the content of a snapshot.
  ///
  /// - Parameters:
  ///   - content: the whole content, of which line 1 was read.
  ///   - repository: the id in line 1, which the caller compares with that of the repository.
  init(in content: [UInt8], of repository: Digest) {
    guard let end = content.firstIndex(of: Self.newline), end + 1 < content.count else {
      self = .absent
      return
    }
    guard let (signer, signature) = Self.decode(content[(end + 1)...]) else {
      self = .malformed
      return
    }
    let message = Self.message(content[..<end], in: repository)
    self = signer.verifies(signature, of: message) ? .valid(signer) : .wrong
  }

  /// Reads line 2, or returns nil if it is not a signature. Lines after it are ignored.
  private static func decode(_ rest: ArraySlice<UInt8>) -> (Signer, Signature)? {
    guard let end = rest.prefix(limit).firstIndex(of: newline) else { return nil }
    let limits = JSON.Limits(bytes: limit, depth: 4, values: 64)
    guard let json = try? JSON(parsing: Array(rest[..<end]), limits: limits),
      let signer = json["signer"]?.string.flatMap({ try? Signer($0) }),
      let signature = json["signature"]?.string.flatMap({ Signature(base64: $0) })
    else { return nil }
    return (signer, signature)
  }
}
