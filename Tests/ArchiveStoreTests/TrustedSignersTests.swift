import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The list of trusted signers: valid names, and which snapshots this host may sign.
struct TrustedSignersTests {
  @Test func namesAreOnePrintableLine() {
    for name in ["nas", "a b", "caf\u{e9}", "\"first\"", String(repeating: "x", count: 64)] {
      #expect(TrustedSigners.isName(name), "\(name)")
    }
    for name in [
      "", " nas", "a\nuntrusted x", "a\r", "\t", "\u{1b}[31m", "\u{7f}", "\u{85}", "a\u{202e}b",
      String(repeating: "x", count: 65),
    ] {
      #expect(!TrustedSigners.isName(name), "\(ByteString(name))")
    }
  }

  /// Anyone who knows the passphrase can write any name, which becomes a line in a file of each
  /// host.
  @Test func namesInKeyFilesAreChecked() throws {
    let (identity, id) = (AgeIdentity(), Blake2b.hash([1]))
    let (good, bad) = (SigningKey().signer, SigningKey().signer)
    let file = KeyFile(
      of: id, identity: identity, recipients: [identity.recipient],
      signers: [good: "nas", bad: "a\nsnapshot \(id.hex)"])
    let passphrase = try AgePassphrase(Array("correct".utf8).span)
    let stored = try file.encrypted(with: passphrase, workFactor: 2)
    #expect(try KeyFile(stored, openedWith: passphrase).signers == [good: "nas", bad: ""])
  }

  /// At the location of another repository, only snapshots that this host signed are accepted.
  @Test func trustMayBeRequiredWithoutASigner() {
    let (own, other) = (SigningKey().signer, SigningKey().signer)
    var trust = TrustedSigners()
    #expect(trust.isEmpty && trust.refusal(of: .missing, .valid(other)) == nil)
    trust.isRequired = true
    trust.own = own
    #expect(!trust.isEmpty && trust.refusal(of: .missing, .absent) == .unsigned)
    #expect(trust.refusal(of: .missing, .valid(other)) == .untrusted(other))
    #expect(trust.refusal(of: .missing, .valid(own)) == nil)
  }

  @Test func hostVouchesOnlyForWhatItKnows() {
    let (own, other) = (SigningKey().signer, SigningKey().signer)
    let id = Blake2b.hash([1])
    var trust = TrustedSigners()
    trust.own = own
    #expect(trust.vouches(for: id, .valid(own)))
    for signature in [SnapshotSignature.absent, .wrong, .malformed, .valid(other)] {
      #expect(trust.refusal(of: id, signature) == nil && !trust.vouches(for: id, signature))
    }
    trust.trust(other, name: "")
    #expect(trust.vouches(for: id, .valid(other)) && trust.vouches(for: id, .valid(own)))
    trust.revoke(own)
    #expect(!trust.vouches(for: id, .valid(own)))
    trust.snapshots = [id]
    #expect(trust.vouches(for: id, .absent))
  }

  /// The signature of a snapshot that is repaired.
  enum Original: String, CaseIterable, Sendable { case none, wrong, foreign, own, accepted }

  /// This also applies while no signer is trusted: trust that is later put in this host must not
  /// extend to the repaired snapshot.
  @Test(arguments: Original.allCases, [false, true])
  func repairIsSignedOnlyIfTheOriginalIsVouchedFor(original: Original, isTrusting: Bool) throws {
    let fixture = try SnapshotRepairFixture()
    try fixture.lose("a")
    let own = SigningKey()
    var host = fixture.repository
    host.signingKey = { own }
    host.trust.own = own.signer
    if isTrusting { host.trust.trust(SigningKey().signer, name: "nas") }
    let content = try host.storage.load(
      fixture.stored.id, kind: .snapshot, limit: FormatLimit.snapshot)
    let line = Array(content.dropLast())
    let second: [UInt8]
    switch original {
    case .none, .accepted: second = []
    case .wrong: second = SnapshotSignature.encode([1], of: host.id, signedBy: own)
    case .foreign: second = SnapshotSignature.encode(line, of: host.id, signedBy: SigningKey())
    case .own: second = SnapshotSignature.encode(line, of: host.id, signedBy: own)
    }
    let object = try host.storage.encode(content + (second.isEmpty ? [] : second + [0x0a]))
    try fixture.memory.remove(host.storage.layout.snapshot(fixture.stored.id))
    try fixture.memory.put(object.bytes, host.storage.layout.snapshot(object.id))
    if original == .accepted { host.trust.snapshots = [object.id] }
    var repaired: [SnapshotRepair.Repaired] = []
    _ = try SnapshotRepair(host, of: nil, isDry: false, isForgetting: false).run {
      repaired.append($0)
    }
    let new = try #require(repaired.first?.new)
    let isSigned = original == .own || original == .accepted
    #expect(new.signature == (isSigned ? .valid(own.signer) : .absent))
    #expect(try host.snapshot(new.id) == new)
    #expect(repaired.count == 1 && repaired[0].lost.count == 1)
  }
}
