internal import Codecs

extension Repository {
  /// Returns why a snapshot is not accepted, or nil if it is.
  public func refusal(of stored: StoredSnapshot) -> TrustedSigners.Refusal? {
    trust.refusal(of: stored.id, stored.signature)
  }

  /// Returns why the snapshot of a head is not accepted, or nil if it is.
  public func refusal(of head: SnapshotHead) -> TrustedSigners.Refusal? {
    trust.refusal(of: head.id, head.signature)
  }

  /// Whether this host may sign a copy or a repair of a snapshot.
  func vouches(for stored: StoredSnapshot) -> Bool {
    trust.vouches(for: stored.id, stored.signature)
  }

  /// Checks that a snapshot is accepted.
  ///
  /// - Parameters:
  ///   - action: the refused action, as the words after "cannot".
  ///   - option: the option that accepts the snapshot, with its quotation marks, or nil if the
  ///     command has none.
  /// - Throws: `untrusted` if not.
  public func requireTrusted(
    _ stored: StoredSnapshot, _ action: String, unless option: String? = nil
  ) throws(StoreError) {
    guard let refusal = refusal(of: stored) else { return }
    throw StoreError(
      .untrusted, action, subject: "snapshot \(stored.id.hex.prefix(8))", reason: refusal.reason,
      hint: Self.hint(about: refusal, option))
  }

  private static func hint(about refusal: TrustedSigners.Refusal, _ option: String?) -> String {
    let override = option.map { "; \($0) uses it anyway" } ?? ""
    return switch refusal {
    case .untrusted(let signer):
      "if you know the signer, 'sandboxctl key trust \(signer)' trusts it" + override
    case .unsigned:
      "if you know its origin, 'sandboxctl key trust --snapshot ID' accepts it" + override
    case .malformed, .wrong:
      "another program changed it, or the store: use another snapshot" + override
    }
  }
}
