internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The signers that this host trusts for a repository, in a file of the user's data directory. No
/// store can change it, and none can replace it by an older version, as it can with a key file.
///
/// A line is `SIGNER NAME` for a trusted signer, `untrusted SIGNER` for a revoked one, or `snapshot
/// ID` for a snapshot that is accepted whatever its signature is; `#` begins a comment.
struct KnownSigners {
  private let directory: ByteString?
  private let name: ByteString
  private static let limit = 16 << 20

  /// The file for a repository.
  init(of repository: Repository) {
    directory = Host.dataDirectory.map { $0.appending("sandboxctl/signers") }
    name = ByteString(repository.id.hex + ".txt")
  }

  private var path: ByteString { directory?.appending(name) ?? name }

  /// Reads the file. Without one nothing is trusted.
  ///
  /// - Throws: `SystemError` if it cannot be read, `OperationError` for an invalid line: nothing is
  ///   accepted because of a damaged file.
  func read() throws -> TrustedSigners {
    var trust = TrustedSigners()
    guard let directory else { return trust }
    let bytes: [UInt8]?
    do {
      bytes = try Directory.open(path: directory).file(name).readAll(limit: Self.limit)
    } catch {
      guard error.isMissing else { throw error }
      return trust
    }
    guard let bytes else { throw invalid("it has more than 16 MiB") }
    let lines = String(decoding: bytes, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() where !line.isEmpty && !line.hasPrefix("#") {
      guard Self.add(line, to: &trust) else { throw invalid("line \(index + 1) is invalid") }
    }
    return trust
  }

  /// Adds a line. Returns false if it is invalid.
  private static func add(_ line: Substring, to trust: inout TrustedSigners) -> Bool {
    let words = line.split(separator: " ", maxSplits: 1)
    guard let first = words.first else { return false }
    let rest = words.count > 1 ? String(words[1]) : ""
    switch first {
    case "snapshot":
      guard let id = Digest(hex: rest) else { return false }
      trust.snapshots.insert(id)
    case "untrusted":
      guard let signer = try? Signer(rest) else { return false }
      trust.revoke(signer)
    default:
      guard let signer = try? Signer(String(first)) else { return false }
      trust.trust(signer, name: rest)
    }
    return true
  }

  private func invalid(_ reason: String) -> OperationError {
    OperationError(
      .failed, code: .invalidInput, "read the trusted signers in", subject: path, reason: reason,
      hint: "correct the file; each line is 'SIGNER NAME', 'untrusted SIGNER' or 'snapshot ID'")
  }

  /// Writes the file durably.
  ///
  /// - Throws: `OperationError` without a directory for it; `SystemError`.
  func write(_ trust: TrustedSigners) throws {
    guard let directory else {
      throw OperationError(
        .failed, code: .environmentMissing,
        "cannot record the trusted signers: there is no data directory",
        hint: "set $HOME or $XDG_DATA_HOME")
    }
    let lines =
      trust.names.map { $1.isEmpty ? "\($0)" : "\($0) \($1)" }.sorted()
      + trust.revoked.map { "untrusted \($0)" }.sorted()
      + trust.snapshots.sorted().map { "snapshot \($0.hex)" }
    let text = lines.map { $0 + "\n" }.joined()
    try AtomicFile.write(
      Array(text.utf8), as: name, in: Directory.make(path: directory, permissions: 0o700),
      permissions: 0o600)
  }

  /// Writes the file. If that fails, the next command writes it.
  func record(_ trust: TrustedSigners) { try? write(trust) }
}
