internal import Codecs
internal import DatabaseCapture
internal import SystemIO

extension MobileSyncContents {
  /// Refuses a content that is shorter than the manifest records, and has thus lost its end.
  ///
  /// A device records the size of a file before it sends the content. A database in use may become
  /// shorter in between (`VACUUM`), and so may its log and its journal (a checkpoint, a commit).
  /// But a database also has its size in its header. If the SHA-1 of a content as sent is in the
  /// manifest, the content is compared with that instead. An encrypted content with valid padding
  /// at its end is complete, because the device pads the data that it sends: then the app made the
  /// file shorter.
  ///
  /// - Parameters:
  ///   - size: the size of the content, less than the recorded one.
  ///   - head: the first bytes of the content, at least as many as a database's header has.
  ///   - isPadded: whether the end of an encrypted content has valid padding.
  func requireWhole(
    _ record: MobileRecord, size: UInt64, head: [UInt8], isPadded: Bool = false
  ) throws(PayloadFault) {
    if record.file.digest != nil || DatabaseMember.owner(of: record.relativePath) != nil { return }
    guard DatabaseHead.begins(head.span) else {
      if isPadded { return }
      throw PayloadFault(
        reason: "its content has only \(size) of the \(record.file.size) bytes that the manifest "
          + "records")
    }
    if let whole = SQLiteDatabase.size(header: head), size < whole, !hasLog(record) {
      throw PayloadFault(
        reason: "its content has only \(size) of the \(whole) bytes that the database's header "
          + "records")
    }
  }

  /// Whether the backup has a log or a journal of a database. Pages that the database lacks may be
  /// in a log, and a journal may make it shorter.
  private func hasLog(_ database: MobileRecord) -> Bool {
    [DatabaseMember.log, .journal].contains { member in
      let path = ByteString(Array(database.relativePath.bytes) + member.suffix)
      let name = MobileRecord.fileID(domain: database.domain, relativePath: path)
      return ((try? status(name))?.size ?? 0) > 0
    }
  }
}
