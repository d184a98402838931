internal import Codecs
internal import SandboxModel

extension DocumentReader {
  mutating func markers(_ node: YAMLNode?) -> [Marker] {
    var markers: [Marker] = []
    for element in node?.sequence ?? [] {
      if let marker = marker(element) { markers.append(marker) }
    }
    return markers
  }

  private mutating func marker(_ node: YAMLNode) -> Marker? {
    guard let id = node["id"]?.text, let then = node["then"] else { return nil }
    if let idNode = node["id"] { note(id, idNode) }
    guard let sign = sign(node) else { return nil }
    return Marker(
      id: id, location: location(node), sign: sign,
      kinds: kinds(node["in"], standard: Set(ContainerKind.allCases)),
      isInherited: node["inherit"] != nil, settings: settings(then),
      platform: then["platform"] == nil ? .same : .unchanged, versions: versions(node["versions"]),
      why: node["why"]?.text, source: node["source"]?.text)
  }

  private mutating func sign(_ node: YAMLNode) -> Marker.Sign? {
    for entry in node.mapping ?? [] {
      if entry.name == "value", node["xattr"] == nil {
        add(
          .key, at: entry.keyMark, "'value' without 'xattr'", expected: "'begins-with' for a file")
      }
      if entry.name == "begins-with", node["file"] == nil {
        add(
          .key, at: entry.keyMark, "'begins-with' without 'file'",
          expected: "'value' for an attribute")
      }
    }
    if let name = node["xattr"]?.text, !name.isEmpty {
      return .attribute(name: name, value: node["value"]?.text)
    }
    guard let file = node["file"], let name = file.text, !name.isEmpty else { return nil }
    if name.utf8.contains(UInt8(ascii: "/")) {
      add(
        .value, at: file.mark, "'file' is a path",
        expected: "the name of a file in the directory that it marks")
      return nil
    }
    return .file(name: name, beginsWith: node["begins-with"]?.text)
  }
}
