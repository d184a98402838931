package import SystemIO

/// The type of a file, told by its name and by its first bytes.
package struct FileType: Sendable, Hashable {
  /// The type.
  package let type: TypeIdentifier
  package let basis: Basis
  /// The type that the first bytes tell, or nil if they match no signature.
  package let content: TypeIdentifier?
  /// Whether the first bytes tell another format than the name.
  package let isContradicted: Bool

  /// The source of a type.
  package enum Basis: String, Sendable, Hashable {
    /// The filename extension, which alone decides on Apple's platforms.
    case filenameExtension = "extension"
    /// The first bytes.
    case content
    /// The kind of the entry: a directory or a symbolic link.
    case kind
    /// Neither the name nor the content is known.
    case none
  }
}

extension TypeTree {
  /// Returns the type of a file. The extension decides; without a known one, the content.
  ///
  /// - Parameters:
  ///   - name: The file's name or path.
  ///   - head: The first bytes, at least `FileSignature.headLength` unless the file is shorter.
  package func type(ofFile name: ByteString, kind: FileKind, head: [UInt8]) -> FileType {
    let known = Self.filenameExtension(of: name).map { types(ofExtension: $0) } ?? []
    switch kind {
    case .directory:
      let packages = known.filter { isDirectory($0) }
      return FileType(
        type: packages.first ?? Self.folder, basis: packages.isEmpty ? .kind : .filenameExtension,
        content: nil, isContradicted: false)
    case .symlink:
      return FileType(type: Self.symlink, basis: .kind, content: nil, isContradicted: false)
    default: return type(ofExtensions: known.filter { !isDirectory($0) }, head: head)
    }
  }

  private func type(ofExtensions known: [TypeIdentifier], head: [UInt8]) -> FileType {
    let signature = signatures.first { $0.matches(head) }
    guard let first = known.first else {
      if let signature {
        return FileType(
          type: signature.type, basis: .content, content: signature.type, isContradicted: false)
      }
      return FileType(type: Self.data, basis: .none, content: nil, isContradicted: false)
    }
    // If an extension has several types, the one that the content has.
    let type =
      signature.flatMap { found in known.first { conforms($0, to: found.type) } } ?? first
    let agrees = signature.map { found in
      found.isGeneric || conforms(type, to: found.type) || conforms(found.type, to: type)
    }
    return FileType(
      type: type, basis: .filenameExtension, content: signature?.type,
      isContradicted: agrees == false)
  }

  private func isDirectory(_ type: TypeIdentifier) -> Bool { conforms(type, to: Self.directory) }

  /// Returns the extension of a file's name, or nil: the part after the last dot, which is not the
  /// first byte.
  package static func filenameExtension(of name: ByteString) -> ByteString? {
    guard let last = name.lastComponent, let dot = last.bytes.lastIndex(of: UInt8(ascii: ".")),
      dot > last.bytes.startIndex, dot + 1 < last.bytes.endIndex
    else { return nil }
    return ByteString(last.bytes[(dot + 1)...])
  }

  private static let directory = TypeIdentifier(known: "public.directory")
  private static let folder = TypeIdentifier(known: "public.folder")
  private static let symlink = TypeIdentifier(known: "public.symlink")
  private static let data = TypeIdentifier(known: "public.data")
}
