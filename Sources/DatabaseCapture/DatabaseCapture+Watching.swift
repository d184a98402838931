internal import SystemIO

extension DatabaseCapture {
  /// Reads the unit between two fingerprints. Returns nil if they differ.
  ///
  /// If they match, the database did not change and the log was only appended to. The database file
  /// and the log up to the size that was read are then a state that a crash at that moment could
  /// have left. A live journal existed all the time; the changes it would undo are not in a
  /// database that did not change.
  static func watch(
    _ unit: DatabaseUnit, in directory: borrowing Directory, _ store: (MemberReader) throws -> Void
  ) throws -> [CapturedMember]? {
    guard let before = try FileFingerprint.whenStable(at: unit, in: directory),
      before.journal != .liveForSeveral, try before.isOfNoTransaction(unit, in: directory)
    else { return nil }
    var members: [CapturedMember] = []
    for member in before.members {
      let isDatabase = member == .database
      guard
        let reader = try MemberReader(
          member, of: unit, in: directory, mustStayUnchanged: isDatabase),
        !isDatabase || FileState(reader.status) == before.database
      else { return nil }
      do {
        members.append(try take(reader, store))
      } catch is ContentChanged {
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
