internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The signers that this host trusts for a repository, in a file of the user's data directory. A
/// store can neither change the file nor, unlike a key file, replace it by an older version.
///
/// A line is `SIGNER NAME` for a trusted signer, `untrusted SIGNER` for a revoked one, or `snapshot
/// ID` for a snapshot that is accepted whatever its signature is; `#` begins a comment.
///
/// The id of a repository with trusted signers is recorded for its location as well. Otherwise
/// anyone who can write to the store could give the repository another id, which this host does not
/// know.
struct KnownSigners {
  private let directory: ByteString?
  private let id: Digest
  private let location: RecordedLocation
  private static let limit = 16 << 20
  private static let lock: ByteString = "lock"

  /// The file for a repository.
  init(of repository: Repository, at location: RecordedLocation) {
    directory = Host.dataDirectory.map { $0.appending("sandboxctl/signers") }
    id = repository.id
    self.location = location
  }

  private var name: ByteString { ByteString(id.hex + ".txt") }
  private var path: ByteString { directory?.appending(name) ?? name }

  // MARK: - Reading

  /// Reads the file. If it does not exist, nothing is trusted.
  ///
  /// - Parameter console: receives a warning if other users can change the file.
  /// - Throws: `SystemError` if it cannot be read, `OperationError` for an invalid line: nothing is
  ///   accepted because of a damaged file.
  func read(_ console: Console? = nil) throws -> TrustedSigners {
    var trust = TrustedSigners()
    guard let bytes = try content(of: name, console) else { return trust }
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() where !line.isEmpty && line.first != UInt8(ascii: "#") {
      guard Self.add(line, to: &trust) else { throw invalid("line \(index + 1) is invalid") }
    }
    return trust
  }

  /// Adds a line. Returns false if it is invalid.
  private static func add(_ line: ArraySlice<UInt8>, to trust: inout TrustedSigners) -> Bool {
    let words = line.split(separator: UInt8(ascii: " "), maxSplits: 1).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard let first = words.first else { return false }
    let rest = words.count > 1 ? words[1] : ""
    switch first {
    case "snapshot":
      guard let id = Digest(hex: rest) else { return false }
      trust.snapshots.insert(id)
    case "untrusted":
      guard let signer = try? Signer(rest) else { return false }
      trust.revoke(signer)
    default:
      guard rest.isEmpty || TrustedSigners.isName(rest), let signer = try? Signer(first) else {
        return false
      }
      trust.trust(signer, name: rest)
    }
    return true
  }

  /// Returns the content of a file, or nil if it does not exist.
  private func content(of name: ByteString, _ console: Console?) throws -> [UInt8]? {
    guard let directory else { return nil }
    do {
      let file = try Directory.open(path: directory).file(name)
      if try file.status().permissions & 0o022 != 0 {
        let path = directory.appending(name)
        console?.warning(
          "other users may change the trusted signers in '\(path)': "
            + "run 'chmod 600 \(ShellWord.text(path))'")
      }
      guard let bytes = try file.readAll(limit: Self.limit) else {
        throw invalid("it has more than 16 MiB")
      }
      return bytes
    } catch let error as SystemError where error.isMissing {
      return nil
    }
  }

  private func invalid(_ reason: String) -> OperationError {
    OperationError(
      .failed, code: .invalidInput, "read the trusted signers in", subject: path, reason: reason,
      hint: "correct the file; each line is 'SIGNER NAME', 'untrusted SIGNER' or 'snapshot ID'")
  }

  // MARK: - Locations

  /// Whether the repository is recorded for its location; nil if no repository is.
  func isAtLocation() throws -> Bool? {
    for name in location.recordNames {
      if let ids = try ids(in: name) { return ids.contains(id.hex) }
    }
    return nil
  }

  /// Whether the repository is in the location's own record, not only in that of an earlier
  /// version.
  func isRecorded() throws -> Bool { try ids(in: location.recordName)?.contains(id.hex) == true }

  /// Returns the ids of the repositories at a location whose signers this host trusts, or nil if
  /// none is recorded.
  private func ids(in name: ByteString) throws -> Set<String>? {
    try content(of: name, nil).map { bytes in
      Set(bytes.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) })
    }
  }

  // MARK: - Writing

  /// Changes the file durably. Concurrent changes by other processes are kept.
  ///
  /// - Returns: the signers and snapshots that are in the file afterwards.
  /// - Throws: `OperationError` without a directory for it, and as `read(_:)`; `SystemError`.
  func update(_ change: (inout TrustedSigners) -> Void) throws -> TrustedSigners {
    guard let directory else {
      throw OperationError(
        .failed, code: .environmentMissing,
        "cannot record the trusted signers: there is no data directory",
        hint: "set $HOME or $XDG_DATA_HOME")
    }
    let parent = try Directory.make(path: directory, permissions: 0o700)
    let lock = try FileLock(Self.lock, in: parent, waiting: true)
    defer { withExtendedLifetime(lock) {} }
    var trust = try read()
    change(&trust)
    try write(trust, in: parent)
    if !trust.names.isEmpty { try recordLocation(in: parent) }
    return trust
  }

  private func write(_ trust: TrustedSigners, in parent: borrowing Directory) throws {
    let lines =
      trust.names.map { $1.isEmpty ? "\($0)" : "\($0) \($1)" }.sorted()
      + trust.revoked.map { "untrusted \($0)" }.sorted()
      + trust.snapshots.sorted().map { "snapshot \($0.hex)" }
    try Self.write(lines, as: name, in: parent)
  }

  private func recordLocation(in parent: borrowing Directory) throws {
    let known = try ids(in: location.recordName) ?? []
    if known.contains(id.hex) { return }
    try Self.write(known.union([id.hex]).sorted(), as: location.recordName, in: parent)
  }

  private static func write(
    _ lines: [String], as name: ByteString, in parent: borrowing Directory
  ) throws {
    let text = lines.map { $0 + "\n" }.joined()
    try AtomicFile.write(Array(text.utf8), as: name, in: parent, permissions: 0o600)
  }
}

extension Repository {
  /// Returns the repository as this host uses it: with the key that signs new snapshots, and the
  /// signers that the host trusts. Signers of a key file that the host does not know are recorded.
  func withHostSigners(_ console: Console, at recorded: RecordedLocation) throws -> Repository {
    let key = HostSigningKey(of: self, console)
    let known = KnownSigners(of: self, at: recorded)
    var trust = try known.read(console)
    let isAtLocation = try known.isAtLocation()
    let learned = keys?.signers ?? [:]
    let isRecorded = try known.isRecorded()
    if trust.merge(learned) || !trust.names.isEmpty && !isRecorded {
      do {
        trust = try known.update { _ = $0.merge(learned) }
      } catch {
        console.warning("cannot record the trusted signers: \(Failure(error).message)")
      }
    }
    if isAtLocation == false, trust.names.isEmpty {
      trust.isRequired = true
      console.warning(
        "this host trusts signers of another repository at '\(location)', and none of this one: "
          + "restores refuse snapshots that this host did not sign")
      console.hint("if you replaced the repository, run 'sandboxctl key trust' for this one")
    }
    trust.own = key.signer
    var repository = self
    repository.trust = trust
    repository.signingKey = { key.key() }
    return repository
  }
}
