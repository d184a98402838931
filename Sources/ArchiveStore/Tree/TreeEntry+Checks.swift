internal import Codecs
internal import SystemIO

extension TreeEntry {
  /// The first violation of the format in this entry, or nil if there is none. Writers and readers
  /// apply the same checks.
  var fault: String? {
    PathRules.fault(inName: name) ?? valueFault ?? node.fault ?? attributeFault
      ?? linkFault ?? extensionFault
  }

  private var valueFault: String? {
    if permissions > 0o7777 { return "permissions beyond 07777" }
    return modified.nanoseconds > 999_999_999 ? "nanoseconds beyond 999999999" : nil
  }

  private var attributeFault: String? {
    var last: ByteString?
    for attribute in attributes {
      let name = attribute.name
      if name.isEmpty || name.hasNUL || name.count > 255 {
        return "an attribute with an invalid name"
      }
      if let last, !(last < name) { return "attributes out of order or duplicated" }
      last = name
      switch attribute.value {
      case .inline(let value):
        if value.count > Attribute.inlineLimit { return "an inline attribute that is too long" }
      case .blob(_, let length):
        if length <= Attribute.inlineLimit || length > FormatLimit.blob {
          return "an attribute's blob of \(length) bytes"
        }
      }
    }
    return nil
  }

  private var linkFault: String? {
    guard let linkGroup else { return nil }
    if case .directory = node { return "a directory with hard links" }
    return PathRules.fault(inPath: linkGroup).map { "a hard-link group with \($0)" }
  }

  private var extensionFault: String? {
    var last: UInt64 = 127
    for field in extensions {
      guard field.key > last, field.key <= Int64.max else { return "extensions out of order" }
      last = field.key
      var decoder = CBORDecoder(field.value)
      do {
        try decoder.skip()
        try decoder.finish()
      } catch { return "an extension that is not deterministic CBOR" }
    }
    return nil
  }
}

extension Node {
  fileprivate var fault: String? {
    switch self {
    case .file(let content): content.fault
    case .symlink(let target):
      if target.isEmpty || target.hasNUL || target.count > FormatLimit.path {
        "a link with an invalid target"
      } else {
        nil
      }
    case .directory, .fifo, .socket, .characterDevice, .blockDevice: nil
    }
  }
}

extension Content {
  fileprivate var fault: String? {
    if level > Self.maximumLevel { return "lists of level \(level)" }
    if level == 0 && pieces.count > Self.inlinePieces {
      return "\(pieces.count) pieces without a list"
    }
    if level > 0 && pieces.isEmpty { return "a list level without lists" }
    if let fault = ContentCoding.fault(in: pieces, level: level) { return fault }
    guard let sum = try? ContentCoding.size(of: pieces), sum == size else {
      return "pieces that do not add up to the file's \(size) bytes"
    }
    return nil
  }
}
