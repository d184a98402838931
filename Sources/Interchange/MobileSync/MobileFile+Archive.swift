internal import Codecs
internal import SystemIO

extension MobileFile {
  /// The limits of an archive: extended attributes are a few kilobytes, everything else less than
  /// one.
  static let archiveLimits = PropertyList.Limits(bytes: 1 << 20, depth: 16, objects: 20_000)

  /// Reads the column `file` of Manifest.db: an `MBFile` in a binary property list from
  /// NSKeyedArchiver, whose objects refer to each other by number.
  ///
  /// The objects may be in any order. Data is a separate object, a dictionary with `NS.data`, or a
  /// dictionary whose `NS.data` refers to the data. No reference is followed more than three times.
  init(archive: [UInt8]) throws(RecordFault) {
    if let members = UsualArchive.members(of: archive) {
      try self.init(members)
    } else {
      try self.init(KeyedArchive(archive).members())
    }
  }

  private init(_ members: ArchivedMembers) throws(RecordFault) {
    if let number = members.mode {
      guard let mode = UInt16(exactly: number) else {
        throw RecordFault(reason: "its mode is invalid")
      }
      self.mode = mode
    }
    size = UInt64(clamping: members.size)
    owner = UInt32(truncatingIfNeeded: members.owner)
    group = UInt32(truncatingIfNeeded: members.group)
    inode = UInt64(bitPattern: members.inode)
    (modified, changed, born) = (members.modified, members.changed, members.born)
    protectionClass = UInt8(exactly: members.protectionClass) ?? 0
    (target, digest) = (members.target, members.digest)
    if let bytes = members.key {
      guard let key = WrappedKey(bytes) else {
        throw RecordFault(reason: "its key has \(bytes.count) bytes instead of 44")
      }
      self.key = key
    }
    if let bytes = members.attributes { attributes = try Self.attributes(bytes) }
  }

  /// Reads the extended attributes: a property list with a dictionary of data.
  private static func attributes(
    _ bytes: [UInt8]
  ) throws(RecordFault) -> [ForeignEntry.Attribute] {
    let list: PropertyList
    do throws(CodecError) {
      list = try PropertyList(reading: bytes, limits: archiveLimits)
    } catch {
      throw RecordFault(reason: "its extended attributes are damaged: \(error.reason)")
    }
    guard let members = list.dictionaryValue else {
      throw RecordFault(reason: "its extended attributes are a \(list.kind), not a dictionary")
    }
    return try members.map { member throws(RecordFault) in
      guard case .data(let value) = member.value else {
        throw RecordFault(reason: "an extended attribute is a \(member.value.kind), not data")
      }
      return ForeignEntry.Attribute(name: ByteString(member.key), value: value)
    }
  }
}

/// The members of an archived `MBFile` as stored. Missing numbers are 0.
struct ArchivedMembers: Hashable, Sendable {
  var mode: Int64?
  var size: Int64 = 0
  var owner: Int64 = 0
  var group: Int64 = 0
  var inode: Int64 = 0
  var modified: Int64 = 0
  var changed: Int64 = 0
  var born: Int64 = 0
  var protectionClass: Int64 = 0
  var target: ByteString?
  var digest: [UInt8]?
  /// The wrapped key.
  var key: [UInt8]?
  /// The property list of the extended attributes.
  var attributes: [UInt8]?
}

/// The objects of a keyed archive of any form and its root object.
struct KeyedArchive {
  private let objects: [PropertyList]
  private let root: PropertyList

  init(_ bytes: [UInt8]) throws(RecordFault) {
    let list: PropertyList
    do throws(CodecError) {
      list = try PropertyList(reading: bytes, limits: MobileFile.archiveLimits)
    } catch {
      throw RecordFault(reason: "its metadata is damaged: \(error.reason)")
    }
    guard let objects = list["$objects"]?.arrayValue, let top = list["$top"]?["root"],
      let root = Self.resolve(top, in: objects), root.dictionaryValue != nil
    else {
      throw RecordFault(reason: "its metadata is not a keyed archive of a file")
    }
    (self.objects, self.root) = (objects, root)
  }

  /// The members of the file.
  func members() throws(RecordFault) -> ArchivedMembers {
    var members = ArchivedMembers()
    if let mode = root["Mode"] {
      guard let mode = Self.integer(mode) else { throw RecordFault(reason: "its mode is invalid") }
      members.mode = mode
    }
    members.size = integer("Size")
    (members.owner, members.group) = (integer("UserID"), integer("GroupID"))
    members.inode = integer("InodeNumber")
    members.modified = integer("LastModified")
    members.changed = integer("LastStatusChange")
    members.born = integer("Birth")
    members.protectionClass = integer("ProtectionClass")
    (members.target, members.digest) = (text("Target"), data("Digest"))
    (members.key, members.attributes) = (data("EncryptionKey"), data("ExtendedAttributes"))
    return members
  }

  /// Returns a value, or the object that it refers to; nil for the null object and for references
  /// to nothing.
  private static func resolve(_ value: PropertyList, in objects: [PropertyList]) -> PropertyList? {
    var object = value
    if case .uid(let number) = value {
      guard let index = Int(exactly: number), objects.indices.contains(index) else { return nil }
      object = objects[index]
    }
    if case .uid = object { return nil }
    return object == .string("$null") ? nil : object
  }

  private func value(_ key: String) -> PropertyList? {
    root[key].flatMap { Self.resolve($0, in: objects) }
  }

  private func integer(_ key: String) -> Int64 { value(key).flatMap(Self.integer) ?? 0 }

  private static func integer(_ value: PropertyList) -> Int64? {
    switch value {
    case .integer(let number): number
    case .unsigned(let number): Int64(bitPattern: number)
    case .real(let number): Int64(exactly: number.rounded(.down))
    default: nil
    }
  }

  private func text(_ key: String) -> ByteString? {
    let found = value(key)
    let text = found?["NS.string"].flatMap { Self.resolve($0, in: objects) } ?? found
    return text?.stringValue.map { ByteString($0) }
  }

  private func data(_ key: String) -> [UInt8]? {
    let found = value(key)
    let data = found?["NS.data"].flatMap { Self.resolve($0, in: objects) } ?? found
    if case .data(let bytes) = data { return bytes }
    return nil
  }
}
