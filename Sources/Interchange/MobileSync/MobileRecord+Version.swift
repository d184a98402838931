internal import Codecs
internal import SystemIO

extension MobileRecord {
  /// The time between the last change of a file and the date of the backup after which the manifest
  /// alone proves that the content is unchanged, in seconds. Its times are whole seconds, a backup
  /// takes up to hours, and its date may be that of its end.
  private static let settlingTime: Int64 = 24 * 3600

  /// Returns the version of the file's content (docs/formats-itunes.md, "Later imports").
  ///
  /// - Parameters:
  ///   - time: the date of the backup.
  ///   - file: the file with the content in the backup.
  func version(in time: Timestamp?, stored file: FileStatus) -> ContentVersion {
    ContentVersion(
      name: Blake2b.hash(fileID.bytes.map(\.self)), facts: facts, isSettled: isSettled(at: time),
      file: ContentVersion.StoredFile(file))
  }

  /// The digest of everything in the manifest that changes with the content: the device updates a
  /// file's time of the last status change whenever its content changes. The key is compared as a
  /// precaution: contents with different keys count as different.
  private var facts: Digest {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(512)
    for name in [domain, relativePath, fileID] {
      LittleEndian.append(UInt32(name.count), to: &bytes)
      bytes += name.bytes
    }
    LittleEndian.append(file.mode ?? 0, to: &bytes)
    LittleEndian.append(file.size, to: &bytes)
    LittleEndian.append(file.inode, to: &bytes)
    for time in [file.modified, file.changed, file.born] { LittleEndian.append(time, to: &bytes) }
    bytes.append(file.protectionClass)
    let key = file.key.map { $0.wrapped } ?? []
    LittleEndian.append(UInt32(key.count), to: &bytes)
    bytes += key
    bytes += file.digest ?? []
    return Blake2b.hash(bytes)
  }

  /// Whether a later change of the content would have changed the facts. Writers other than devices
  /// record neither inodes nor status changes, so their contents never count as settled.
  private func isSettled(at time: Timestamp?) -> Bool {
    guard let time, file.inode != 0, file.changed != 0 else { return false }
    let (limit, overflow) = max(file.modified, file.changed)
      .addingReportingOverflow(Self.settlingTime)
    return !overflow && limit < time.seconds
  }
}
