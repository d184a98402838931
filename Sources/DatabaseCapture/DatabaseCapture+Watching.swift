internal import SystemIO

extension DatabaseCapture {
  /// Reads the unit between two looks; gives nil when they differ.
  ///
  /// The database stood still and the log was only appended to: so the database's file and the log up
  /// to where it was read are what a crash at the moment of that reading would have left. A live
  /// journal was there all the while; what it would undo is not in a database that stood still.
  static func watch(
    _ unit: DatabaseUnit, in directory: borrowing Directory, _ store: (MemberReader) throws -> Void
  ) throws -> [CapturedMember]? {
    guard let before = try FileFingerprint.whenStable(at: unit, in: directory),
      before.journal != .liveForSeveral, try before.isOfNoTransaction(unit, in: directory)
    else { return nil }
    var members: [CapturedMember] = []
    for member in before.members {
      let isDatabase = member == .database
      guard let reader = try MemberReader(member, of: unit, in: directory, mustStand: isDatabase),
        !isDatabase || Stand(reader.status) == before.database
      else { return nil }
      do {
        members.append(try take(reader, store))
      } catch is ContentMoved {
        return nil
      }
    }
    let after = try FileFingerprint(at: unit, in: directory)
    let readOfLog = members.first { $0.member == .log }?.status.size ?? 0
    let holds =
      try before.stands(until: after, readOfLog: readOfLog) && before.journal == after.journal
      && after.isOfNoTransaction(unit, in: directory)
    return holds ? members : nil
  }
}
