internal import Codecs
package import SystemIO

/// The recognition of sandboxctl repositories, which are never backed up and never purged. A
/// restore deletes them only if it deletes excluded entries.
package enum RepositoryDirectory {
  /// The name of the file with the settings of a repository.
  package static let settings = ByteString(settingsName)

  private static let settingsName = Array("repository.json".utf8)

  /// Whether a directory is a repository: it has a repository file with the format and an id. The
  /// name alone is not enough, as a user's project may have a file of that name.
  package static func isOne(_ directory: borrowing Directory) -> Bool {
    guard let file = try? directory.fileUntouched(settings),
      (try? file.status().kind) == .file,
      let content = try? file.readAll(limit: 64 * 1024),
      let json = try? JSON(parsing: content)
    else { return false }
    return json["format"]?.string == "sandboxctl-repository"
      && json["id"]?.string.flatMap { Digest(hex: $0) } != nil
  }

  /// Whether a directory is a repository, with the entries that a walk has read of it.
  package static func isOne(
    _ directory: borrowing Directory, with batch: borrowing WalkBatch
  ) -> Bool {
    hasSettings(batch) && isOne(directory)
  }

  private static func hasSettings(_ batch: borrowing WalkBatch) -> Bool {
    let (bytes, wanted) = (batch.bytes, settingsName)
    for number in 0..<batch.entries.count {
      let entry = batch.entries[number]
      if entry.status.kind == .file, entry.nameRange.count == wanted.count,
        bytes.span.extracting(entry.nameRange).hasSameBytes(as: wanted.span)
      {
        return true
      }
    }
    return false
  }
}
