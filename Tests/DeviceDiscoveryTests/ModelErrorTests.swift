import Codecs
import DeviceDiscovery
import SandboxModel
import SystemIO
import Testing

struct ModelErrorTests {
  @Test func unreadablePropertyListHasItsPosition() {
    let error = #expect(throws: CodecError.self) {
      try PropertyList(reading: [0x3c, 0x70, 0xff, 0xfe, 0x00])
    }
    let shown = error.map { ModelError(reading: $0) }
    #expect(shown?.code == .propertyList)
    #expect(shown?.location == .offset(2))
    #expect(
      shown?.description.hasPrefix(
        "cannot read the property list (byte 2): ") == true)
  }

  @Test func quotedKeyIsEscaped() {
    let text = "<plist>\n<dict><key>a\u{1b}[1m</key></dict></plist>"
    let error = #expect(throws: CodecError.self) { try PropertyList(reading: Array(text.utf8)) }
    #expect(
      error.map { ModelError(reading: $0).description }
        == "cannot read the property list (line 2, column 7): the key 'a\\x1b[1m' has no value")
  }

  @Test func exceededLimitHasItsOwnCode() {
    let error = #expect(throws: CodecError.self) {
      try PropertyList(reading: [0x20, 0x20], limits: .init(bytes: 1))
    }
    #expect(error.map { ModelError(reading: $0).code } == .limit)
    #expect(error.map { ModelError(writing: $0).action } == "write the property list")
  }

  /// A property list holds text, so an identifier that is not UTF-8 cannot be written.
  @Test func metadataWithoutUTF8IsRefused() {
    let error = #expect(throws: ModelError.self) {
      try ContainerMetadata.files(
        of: .data, identifier: ByteString([0xff]), uuid: "x", layout: .coreSimulator, stored: nil,
        isSameDirectory: false)
    }
    #expect(
      error?.description == "cannot write the property list: '\\xff' is not UTF-8")
  }
}
