public import Codecs
internal import SystemIO

/// The signers whose snapshots a host accepts. While there is none, every snapshot is accepted.
public struct TrustedSigners: Hashable, Sendable {
  /// The trusted signers, each with the name that a user gave it, or an empty one.
  public private(set) var names: [Signer: String] = [:]
  /// The signers that were trusted once. A key file that still names one as trusted has no effect.
  public private(set) var revoked: Set<Signer> = []
  /// The snapshots that are accepted whatever their signatures are.
  public var snapshots: Set<Digest> = []
  /// The signer of this host, which is trusted as soon as another one is, unless it was revoked.
  public var own: Signer?
  /// Whether snapshots need a trusted signer although this list names none, because the host trusts
  /// signers of another repository at the same location.
  public var isRequired = false

  /// Creates an empty list, which accepts every snapshot.
  public init() {}

  /// Whether no signer is trusted, so that every snapshot is accepted.
  public var isEmpty: Bool { names.isEmpty && !isRequired }

  /// Whether a text can be the name of a signer: 1 to 64 printable characters, not beginning with a
  /// space. It is part of a line of the host's file, and is printed.
  public static func isName(_ text: String) -> Bool {
    let scalars = text.unicodeScalars
    guard let first = scalars.first, first != " " else { return false }
    return scalars.count <= 64 && ByteString(text).description == text
      && scalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
  }

  /// Trusts a signer, which may have been revoked before.
  public mutating func trust(_ signer: Signer, name: String) {
    revoked.remove(signer)
    names[signer] = name
  }

  /// Revokes the trust in a signer.
  public mutating func revoke(_ signer: Signer) {
    names[signer] = nil
    revoked.insert(signer)
  }

  /// Adds the signers of a key file, except revoked ones. Returns whether any was new.
  public mutating func merge(_ others: [Signer: String]) -> Bool {
    let new = others.filter { names[$0.key] == nil && !revoked.contains($0.key) }
    names.merge(new) { present, _ in present }
    return !new.isEmpty
  }

  /// Whether the snapshots of a signer are accepted.
  public func trusts(_ signer: Signer) -> Bool {
    names[signer] != nil || (signer == own && !revoked.contains(signer))
  }

  /// The reason why a snapshot is not accepted.
  public enum Refusal: Hashable, Sendable {
    case unsigned
    case malformed
    case wrong
    case untrusted(Signer)

    /// The reason as a clause.
    public var reason: String {
      switch self {
      case .unsigned: "it is not signed"
      case .malformed: "its second line is not a signature"
      case .wrong: "its signature does not match its content"
      case .untrusted(let signer): "its signer \(signer) is not trusted"
      }
    }
  }

  /// Returns why a snapshot is not accepted, or nil if it is.
  public func refusal(of id: Digest, _ signature: SnapshotSignature) -> Refusal? {
    isEmpty || snapshots.contains(id) ? nil : fault(of: signature)
  }

  /// Whether this host may sign a copy of a snapshot: a trusted signer or this host signed it, or
  /// its id is accepted. An empty list of signers is not sufficient: if this host is trusted later,
  /// that must not extend to what the store may have added before.
  public func vouches(for id: Digest, _ signature: SnapshotSignature) -> Bool {
    snapshots.contains(id) || fault(of: signature) == nil
  }

  /// Returns why a signature is not that of a trusted signer, or nil if it is.
  private func fault(of signature: SnapshotSignature) -> Refusal? {
    switch signature {
    case .absent: .unsigned
    case .malformed: .malformed
    case .wrong: .wrong
    case .valid(let signer): trusts(signer) ? nil : .untrusted(signer)
    }
  }
}
