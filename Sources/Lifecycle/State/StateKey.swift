public import Codecs
internal import SystemIO

/// What a state file belongs to: one source of backups, in one repository.
public struct StateKey: Hashable, Sendable {
  /// The repository's id.
  public let repository: Digest
  /// What tells this source from every other (docs/state-file.md, "Names").
  public let source: Digest

  /// Makes a key.
  public init(repository: Digest, source: Digest) {
    self.repository = repository
    self.source = source
  }

  /// The directory of the repository's files, below the cache's.
  func directory(in cache: ByteString) -> ByteString { Self.directory(of: repository, in: cache) }

  static func directory(of repository: Digest, in cache: ByteString) -> ByteString {
    cache.appending("sandboxctl").appending(ByteString(repository.hex))
  }

  var state: ByteString { ByteString(source.hex + ".state") }
  var partial: ByteString { ByteString(source.hex + ".partial") }
  /// The state while it is written anew.
  var replacement: ByteString { ByteString(source.hex + ".state.new") }
  /// The marks that its entries bear.
  var marks: ByteString { ByteString(source.hex + ".marks") }
  var lock: ByteString { ByteString(source.hex + ".lock") }
}
