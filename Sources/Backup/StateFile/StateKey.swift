package import Codecs
internal import SystemIO

/// The identity of a state file: one source of backups in one repository.
package struct StateKey: Hashable, Sendable {
  /// The repository's id.
  package let repository: Digest
  /// The identity of the source (docs/state-file.md, "Names").
  package let source: Digest

  /// Creates a key.
  package init(repository: Digest, source: Digest) {
    self.repository = repository
    self.source = source
  }

  /// Returns the directory of the repository's files, below the cache directory.
  func directory(in cache: ByteString) -> ByteString { Self.directory(of: repository, in: cache) }

  static func directory(of repository: Digest, in cache: ByteString) -> ByteString {
    cache.appending("sandboxctl").appending(ByteString(repository.hex))
  }

  var state: ByteString { ByteString(source.hex + ".state") }
  var partial: ByteString { ByteString(source.hex + ".partial") }
  /// The new state while it is written.
  var replacement: ByteString { ByteString(source.hex + ".state.new") }
  /// The marks of the source's entries.
  var marks: ByteString { ByteString(source.hex + ".marks") }
  var lock: ByteString { ByteString(source.hex + ".lock") }
}
