internal import Codecs
internal import SystemIO

extension MobileFile {
  /// Returns the archive that `init(archive:)` reads, in the form and order in which Apple's
  /// programs write it: the null object, the file, its strings and data, the classes.
  func archive(relativePath: ByteString) throws(CodecError) -> [UInt8] {
    var writer = ArchiveWriter()
    var members: [PropertyList.Member] = [
      .init("LastModified", .integer(modified)), .init("Flags", .integer(0)),
      .init("GroupID", .integer(Int64(group))), .init("LastStatusChange", .integer(changed)),
      .init(
        "RelativePath", writer.add(.string(String(decoding: relativePath.bytes, as: UTF8.self)))),
      .init("Birth", .integer(born)), .init("Size", .integer(Int64(clamping: size))),
      .init("InodeNumber", .integer(Int64(bitPattern: inode))),
      .init("UserID", .integer(Int64(owner))),
      .init("ProtectionClass", .integer(Int64(protectionClass))),
    ]
    if let mode { members.append(.init("Mode", .integer(Int64(mode)))) }
    if let target {
      let text = String(decoding: target.bytes, as: UTF8.self)
      members.append(.init("Target", writer.add(.string(text))))
    }
    if let digest { members.append(.init("Digest", writer.add(.data(digest)))) }
    if !attributes.isEmpty {
      let all = attributes.map {
        PropertyList.Member(String(decoding: $0.name.bytes, as: UTF8.self), .data($0.value))
      }
      members.append(
        .init("ExtendedAttributes", writer.add(.data(try PropertyList.dictionary(all).binary()))))
    }
    if let key {
      members.append(.init("EncryptionKey", writer.addMutableData(key.encoded)))
    }
    members.append(.init("$class", writer.addClass("MBFile", "NSObject")))
    return try writer.archive(root: .dictionary(members))
  }

  /// Collects the objects of a keyed archive.
  private struct ArchiveWriter {
    /// The objects from number 2: 0 is the null object and 1 the root.
    private var objects: [PropertyList] = []

    /// Adds an object and returns the reference to it.
    mutating func add(_ object: PropertyList) -> PropertyList {
      objects.append(object)
      return .uid(UInt64(objects.count + 1))
    }

    mutating func addClass(_ names: String...) -> PropertyList {
      let all = PropertyList.array(names.map { .string($0) })
      return add(
        .dictionary([.init("$classname", .string(names[0])), .init("$classes", all)]))
    }

    /// Adds data as Apple's programs write the keys of files, as an object of NSMutableData.
    mutating func addMutableData(_ bytes: [UInt8]) -> PropertyList {
      let type = addClass("NSMutableData", "NSData", "NSObject")
      return add(.dictionary([.init("NS.data", .data(bytes)), .init("$class", type)]))
    }

    func archive(root: PropertyList) throws(CodecError) -> [UInt8] {
      let all = [.string("$null"), root] + objects
      return try PropertyList.dictionary([
        .init("$version", .integer(100_000)), .init("$objects", .array(all)),
        .init("$archiver", .string("NSKeyedArchiver")),
        .init("$top", .dictionary([.init("root", .uid(1))])),
      ]).binary()
    }
  }
}

extension WrappedKey {
  /// The bytes that `init(_:)` reads.
  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    LittleEndian.append(classNumber, to: &bytes)
    return bytes + wrapped
  }
}
