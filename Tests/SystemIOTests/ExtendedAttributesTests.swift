import CLinux
import Glibc
import SystemIO
import TestSupport
import Testing

struct ExtendedAttributesTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("attributes") }

  // ext4 stores about 4,000 bytes of attributes for a file, so these fit on every file system.
  @Test(arguments: [0, 1, 511, 512, 513, 3500])
  func valuesOfAnySizeAreKept(size: Int) throws {
    try keepsValue(of: size, in: temporary.directory)
  }

  // A tmpfs has only the kernel's limit of 64 KiB.
  @Test func largeValuesAreKept() throws {
    guard try Mount.isPermitted() else { return }
    let mount = try Mount(on: temporary.directory, at: temporary.path, "m")
    let directory = try temporary.directory.directory("m")
    for size in [4096, 4097, 32_768, 60 * 1024, 65_536] { try keepsValue(of: size, in: directory) }
    let attributes = directory.attributes(of: "f4096")
    let error = failure { try attributes.set("user.a", to: [UInt8](repeating: 0, count: 65_537)) }
    #expect(error?.operation == .setAttributes)
    withExtendedLifetime(mount) {}
  }

  private func keepsValue(of size: Int, in directory: borrowing Directory) throws {
    var random = Seeded(UInt64(size))
    let (name, value) = (ByteString("f\(size)"), random.bytes(size))
    let file = try directory.create(name)
    let attributes = directory.attributes(of: name)
    try attributes.set("user.test", to: value)
    #expect(try attributes.value(of: "user.test") == value)
    #expect(try attributes.names() == ["user.test"])
    #expect(try file.attributes.value(of: "user.test") == value)
  }

  /// XFS also shows each ACL to root as a separate attribute.
  @Test func anACLHasOneName() throws {
    guard Mount.isPermitted(new: "xfs") else { return }
    let mount = try Mount(new: "xfs", mebibytes: 310, in: temporary, "m")
    let directory = try temporary.directory.directory("m").makeDirectory("d", permissions: 0o755)
    let list: [UInt8] = [
      2, 0, 0, 0, 1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 5, 0, 0xd2, 4, 0, 0,
      4, 0, 5, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 5, 0, 0xff, 0xff, 0xff, 0xff,
      0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ]
    let names: [ByteString] = ["system.posix_acl_access", "system.posix_acl_default"]
    for name in names { try directory.attributes.set(name, to: list) }
    #expect(try directory.attributes.value(of: "trusted.SGI_ACL_FILE") != nil)
    #expect(try directory.attributes.names() == names)
    #expect(try directory.attributes.all().map(\.name) == names)
    withExtendedLifetime(mount) {}
  }

  @Test func attributesAreTheSameThroughEachHandle() throws {
    try temporary.write("x", at: "d/f")
    let directory = try temporary.directory.directory("d")
    let file = try directory.file("f")
    try file.attributes.set("user.a", to: [1])
    #expect(try directory.attributes(of: "f").value(of: "user.a") == [1])
    #expect(try file.attributes.names() == ["user.a"])
    try directory.attributes.set("user.d", to: [2])
    #expect(try temporary.directory.attributes(of: "d").value(of: "user.d") == [2])
    #expect(try directory.attributes.names() == ["user.d"])
    try directory.attributes.remove("user.d")
    #expect(try temporary.directory.attributes(of: "d").names() == [])
  }

  @Test func manyNamesAreReturnedSorted() throws {
    try temporary.write("x", at: "f")
    let attributes = temporary.directory.attributes(of: "f")
    // The names take more than 512 bytes, so the list is read twice.
    let names = (0..<30).map { ByteString("user.\(29 - $0).a-rather-long-name-of-an-attribute") }
    for name in names { try attributes.set(name, to: []) }
    #expect(try attributes.names() == names.sorted())
    #expect(try attributes.value(of: names[0]) == [])
  }

  /// A list or value of typical size takes one call.
  @Test func shortListsAndValuesTakeOneCall() throws {
    try temporary.write("x", at: "f")
    let attributes = temporary.directory.attributes(of: "f")
    try attributes.set("user.a", to: [UInt8](repeating: 7, count: 512))
    let plan = Faults.Plan(failing: [.readAttributes], at: .max, number: 0)
    let (names, value) = try Faults.inject(plan) { () throws(SystemError) in
      (try attributes.names(), try attributes.value(of: "user.a"))
    }
    #expect(names == ["user.a"] && value == [UInt8](repeating: 7, count: 512))
    #expect(plan.count == 2)
  }

  @Test func missingAndRemovedAttributesAreAbsent() throws {
    try temporary.write("x", at: "f")
    let attributes = temporary.directory.attributes(of: "f")
    #expect(try attributes.value(of: "user.none") == nil)
    #expect(try attributes.names() == [])
    try attributes.set("user.a", to: [1])
    try attributes.set("user.a", to: [2, 3])
    #expect(try attributes.value(of: "user.a") == [2, 3])
    try attributes.remove("user.a")
    #expect(try attributes.value(of: "user.a") == nil)
    #expect(failure { try attributes.remove("user.a") }?.number == ENODATA)
    let gone = temporary.directory.attributes(of: "none")
    #expect(failure { _ = try gone.names() }?.isMissing == true)
    #expect(failure { try gone.set("user.a", to: []) }?.path == temporary.path("none"))
  }

  @Test func attributesOfALinkAreItsOwn() throws {
    try temporary.write("x", at: "f")
    try temporary.directory.createLink("l", to: "f")
    try temporary.directory.attributes(of: "f").set("user.a", to: [1])
    let link = temporary.directory.attributes(of: "l")
    #expect(try link.names() == [])
    #expect(try link.value(of: "user.a") == nil)
    #expect(failure { try link.set("user.a", to: [2]) }?.operation == .setAttributes)
    #expect(try temporary.directory.attributes(of: "f").value(of: "user.a") == [1])
  }

  @Test func withoutSupportThereAreNoAttributes() throws {
    let proc = try Directory.open(path: "/proc/self")
    #expect(try proc.attributes(of: "status").names() == [])
    #expect(try proc.attributes(of: "status").value(of: "user.a") == nil)
    let error = failure { try proc.attributes(of: "status").set("user.a", to: []) }
    #expect(error?.operation == .setAttributes)
  }

  @Test func theOlderCallsGiveTheSameResults() throws {
    cl_use_attribute_calls(0)
    defer { cl_use_attribute_calls(1) }
    try keepsValue(of: 3500, in: temporary.directory)
    try attributesAreTheSameThroughEachHandle()
    try missingAndRemovedAttributesAreAbsent()
    try withoutSupportThereAreNoAttributes()
  }

  @Test func aNameWithNULIsNotTakenForTheDirectory() throws {
    for use: Int32 in [0, 1] {
      cl_use_attribute_calls(use)
      defer { cl_use_attribute_calls(1) }
      let attributes = temporary.directory.attributes(of: ByteString([0x61, 0, 0x62]))
      #expect(failure { try attributes.set("user.a", to: [1]) }?.isMissing == true)
      #expect(failure { _ = try attributes.names() }?.isMissing == true)
    }
    #expect(try temporary.directory.attributes.names() == [])
  }

  @Test(arguments: [0, 1] as [Int32]) func aLookupDoesNotFollowLinks(newer: Int32) throws {
    cl_use_attribute_calls(newer)
    defer { cl_use_attribute_calls(1) }
    let long = "a-rather-long-name-of-an-attribute"
    try temporary.write("x", at: "f")
    try temporary.directory.createLink("l", to: "f")
    for number in 0..<60 {
      try temporary.directory.attributes(of: "f").set(
        ByteString("user.\(number).\(long)"), to: [])
    }
    func listed(_ child: String?, _ directory: borrowing Directory) throws -> Listed {
      var lookup = AttributeLookup()
      if let child {
        var name = NameBuffer()
        name.set(child.utf8.span)
        try lookup.list(name, in: directory)
      } else {
        try lookup.list(directory)
      }
      return Listed(
        isEmpty: lookup.isEmpty,
        found: (0..<61).filter { lookup.contains("user.\($0).\(long)".utf8.span) },
        hasPart: lookup.contains("user.1".utf8.span))
    }
    let all = Listed(isEmpty: false, found: Array(0..<60), hasPart: false)
    #expect(try listed("f", temporary.directory) == all)
    #expect(try listed("l", temporary.directory) == Listed())
    try temporary.directory.attributes.set(ByteString("user.7.\(long)"), to: [])
    #expect(try listed(nil, temporary.directory) == Listed(isEmpty: false, found: [7]))
    #expect(failure { _ = try listed("none", temporary.directory) }?.isMissing == true)
    #expect(try listed("status", Directory.open(path: "/proc/self")) == Listed())
  }

  /// The result of looking up the attributes of an entry.
  struct Listed: Equatable {
    var isEmpty = true
    var found: [Int] = []
    var hasPart = false
  }

  @Test func otherErrorsAreThrown() throws {
    try temporary.write("x", at: "f")
    let attributes = temporary.directory.attributes(of: "f")
    for number in [EIO, EACCES] {
      let plan = Faults.Plan(
        failing: [.readAttributes], at: 1, number: number, failsRepeatedly: true)
      Faults.inject(plan) {
        #expect(failure { _ = try attributes.names() }?.number == number)
        #expect(failure { _ = try attributes.value(of: "user.a") }?.number == number)
      }
    }
  }
}
