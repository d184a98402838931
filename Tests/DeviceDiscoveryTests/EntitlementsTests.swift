import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import DeviceDiscovery
@testable import SandboxModel

struct EntitlementsTests {
  private struct Memory: ByteSource {
    let bytes: [UInt8]

    func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8] {
      guard count >= 0, offset < UInt64(bytes.count) else { return [] }
      return Array(bytes[Int(offset)...].prefix(count))
    }
  }

  private static let program = MachOBuilder(
    signature: MachOBuilder.entitlements(["group.signed"]),
    section: MachOBuilder.entitlements(["group.simulated"]))

  @Test func readsSignatureAndSectionOfAllForms() throws {
    for bytes in [
      Self.program.thin(), Self.program.universal(is64: false), Self.program.universal(is64: true),
    ] {
      let found = try MachO.entitlements(in: Memory(bytes: bytes))
      #expect(found.map(\.source) == [.signature, .section])
      #expect(found.map(\.propertyList) == [Self.program.signature, Self.program.section])
    }
    let bare = try MachO.entitlements(in: Memory(bytes: MachOBuilder().thin()))
    #expect(bare.isEmpty)
    for bytes in [[], [1, 2, 3], Array("#!/bin/sh\n".utf8), [UInt8](repeating: 0xca, count: 64)] {
      #expect(try MachO.entitlements(in: Memory(bytes: bytes)).isEmpty)
    }
  }

  /// Every byte of the file is changed in many ways, and the file is truncated at every length.
  @Test func hostileFilesNeverCrash() throws {
    var random = Seeded(77)
    var intact = 0
    for original in [Self.program.thin(), Self.program.universal(is64: true)] {
      for length in 0..<original.count {
        _ = try MachO.entitlements(in: Memory(bytes: Array(original.prefix(length))))
      }
      for position in 0..<min(original.count, 420) {
        for byte: UInt8 in [0, 1, 0x7f, 0x80, 0xff, UInt8(truncatingIfNeeded: random.next())] {
          var bytes = original
          bytes[position] = byte
          if try MachO.entitlements(in: Memory(bytes: bytes)).count == 2 { intact += 1 }
        }
      }
      for _ in 0..<5000 {
        var bytes = original
        for _ in 0..<Int.random(in: 1...8, using: &random) {
          bytes[Int.random(in: 0..<300, using: &random)] = UInt8(truncatingIfNeeded: random.next())
        }
        for found in try MachO.entitlements(in: Memory(bytes: bytes)) {
          #expect(found.propertyList.count <= Entitlements.limit)
        }
      }
    }
    #expect(intact > 0)
  }

  @Test(arguments: [
    (App.EntitlementSource.signature, true), (.section, true), (.archivedEntitlements, true),
    (.provisioningProfile, true), (.signature, false),
  ])
  func groupsAreReadFromEverySource(source: App.EntitlementSource, isThere: Bool) throws {
    let device = try SimulatorDevice()
    let bundle = try device.bundle(
      "B1", "com.example.a", name: "A", more: [("CFBundleExecutable", .string("prog"))])
    let list = MachOBuilder.entitlements(["group.com.example.a"])
    switch source {
    case .signature:
      let text = isThere ? list : Array("<plist><dict/></plist>".utf8)
      try device.directory.file(
        bundle + "/prog", MachOBuilder(signature: text).universal(is64: false))
    case .section: try device.directory.file(bundle + "/prog", MachOBuilder(section: list).thin())
    case .archivedEntitlements:
      try device.directory.file(bundle + "/archived-expanded-entitlements.xcent", list)
    case .provisioningProfile:
      let inner = String(decoding: list, as: UTF8.self)
        .replacingOccurrences(of: "<dict>", with: "<dict><key>Entitlements</key><dict>")
        .replacingOccurrences(of: "</dict>", with: "</dict></dict>")
      try device.directory.file(
        bundle + "/embedded.mobileprovision", [0x30, 0x82, 0xff] + Array(inner.utf8) + [0, 0x31])
    }
    try device.container(.group, "G1", "group.com.example.a")
    let found = try device.find()
    #expect(found.findings.isEmpty)
    let app = try found.app("com.example.a")
    if isThere {
      #expect(app.groups.map(\.basis) == [.known(source)])
      #expect(app.groups.allSatisfy { $0.isKnown })
    } else {
      #expect(app.groups.isEmpty)
    }
    #expect(
      found.members(of: try #require(found.containers.first { $0.kind == .group })).count
        == (isThere ? 1 : 0))
  }

  @Test func groupsOfAnExtensionBelongToItsApp() throws {
    let device = try SimulatorDevice()
    let bundle = try device.bundle("B1", "com.example.a", name: "A")
    let appex = bundle + "/PlugIns/S.appex"
    try device.info(
      appex, "com.example.a.s", name: "S", more: [("CFBundleExecutable", .string("s"))])
    try device.directory.file(
      appex + "/s", MachOBuilder(signature: MachOBuilder.entitlements(["group.x"])).thin())
    let app = try device.find().app("com.example.a")
    #expect(app.groups.map(\.group.bytes) == ["group.x"])
  }

  @Test func invalidEntitlementsAreReported() throws {
    let device = try SimulatorDevice()
    let bundle = try device.bundle(
      "B1", "com.example.a", name: "A", more: [("CFBundleExecutable", .string("../../x"))])
    try device.directory.file(bundle + "/archived-expanded-entitlements.xcent", "garbage")
    try device.directory.file(bundle + "/embedded.mobileprovision", "no list here")
    let other = try device.bundle(
      "B2", "com.example.b", name: "B", more: [("CFBundleExecutable", .string("b"))])
    try device.directory.file(other + "/b", MachOBuilder(signature: Array("garbage".utf8)).thin())
    try device.directory.sparse(other + "/archived-expanded-entitlements.xcent", size: 100 << 20)
    let found = try device.find()
    #expect(found.apps.count == 2)
    #expect(found.findings(.unusableFile).count == 4)
    #expect(found.findings(.wrongValue).map(\.reason) == ["CFBundleExecutable is not a file name"])
  }

  @Test(arguments: [
    ("group.com.example.notes", ["com.example.notes", "com.example.notes.beta"]),
    (
      "group.com.Example.shared",
      ["com.example.mail", "com.example.notes", "com.example.notes.beta"]
    ),
    ("243LU875E5.groups.com.example.mail", ["com.example.mail"]),
    ("group.com.apple.notes", []), ("group.com.apple.mail.x", ["com.apple.mail"]),
    ("group.io.github.them", []), ("group.com.other", []), ("group.com", []),
  ])
  func membersOfAGroupAreGuessed(group: String, expected: [String]) throws {
    let apps = [
      "com.apple.mail", "com.apple.mobilenotes", "com.example.mail", "com.example.notes",
      "com.example.notes.beta", "io.github.us.app",
    ].compactMap { BundleIdentifier(ByteString($0)) }
    let members = GroupGuess.members(
      of: try #require(BundleIdentifier(ByteString(group))), among: apps)
    #expect(members.map(\.description) == expected)
  }
}
