// Reads and writes .npz files of float32 arrays, as rnnbench and numpy.savez do: zip
// archives that are not compressed.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using Arrays = std::map<std::string, std::vector<float>>;

namespace npz {

inline uint32_t get(const std::string &s, size_t at, int bytes) {
    uint32_t v = 0;
    if (at + bytes > s.size()) throw std::runtime_error("the .npz file is cut short");
    for (int i = 0; i < bytes; i++) v |= uint32_t(uint8_t(s[at + i])) << 8 * i;
    return v;
}

inline Arrays read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::string s((std::istreambuf_iterator<char>(file)), {});
    size_t end = s.rfind("PK\5\6"); // of the central directory
    if (end == std::string::npos) throw std::runtime_error("it is no .npz file: " + path);
    Arrays out;
    size_t at = get(s, end + 16, 4);
    for (uint32_t n = get(s, end + 10, 2); n > 0; n--) {
        size_t name = get(s, at + 28, 2), local = get(s, at + 42, 4), size = get(s, at + 24, 4);
        std::string key = s.substr(at + 46, name);
        size_t from = local + 30 + get(s, local + 26, 2) + get(s, local + 28, 2);
        size_t header = 10 + get(s, from + 8, 2);
        if (size == 0xffffffff || from + size > s.size()) throw std::runtime_error("array " + key + " is too large for this reader");
        auto &v = out[key.substr(0, key.rfind(".npy"))];
        v.resize((size - header) / 4);
        memcpy(v.data(), s.data() + from + header, 4 * v.size());
        at += 46 + name + get(s, at + 30, 2) + get(s, at + 32, 2);
    }
    return out;
}

// A Writer adds arrays to a file.
class Writer {
    std::ofstream file;
    std::string directory;
    int count = 0;

    static void put(std::string &s, uint64_t v, int bytes) {
        for (int i = 0; i < bytes; i++) s += char(v >> 8 * i);
    }

    static uint32_t crc(const std::string &s) {
        static const std::vector<uint32_t> table = [] {
            std::vector<uint32_t> t(256);
            for (uint32_t i = 0; i < 256; i++) {
                t[i] = i;
                for (int k = 0; k < 8; k++) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0xedb88320u : 0);
            }
            return t;
        }();
        uint32_t c = ~0u;
        for (uint8_t b : s) c = table[(c ^ b) & 255] ^ c >> 8;
        return ~c;
    }

public:
    explicit Writer(const std::string &path) : file(path, std::ios::binary) {}

    void add(std::string name, const std::vector<int> &shape, const std::vector<float> &v) {
        name += ".npy";
        std::string tuple;
        for (int d : shape) tuple += std::to_string(d) + ",";
        std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + tuple + "), }\n";
        std::string data = std::string("\x93NUMPY\1\0", 8);
        put(data, header.size(), 2);
        data += header;
        data.append(reinterpret_cast<const char *>(v.data()), 4 * v.size());
        if (uint64_t(file.tellp()) + data.size() > 0xffff0000u) throw std::runtime_error("the answer is too large for a file of this writer");
        uint64_t at = file.tellp();
        std::string common; // to both headers
        put(common, 20, 2);
        put(common, 0, 8);
        put(common, crc(data), 4);
        put(common, data.size(), 4);
        put(common, data.size(), 4);
        put(common, name.size(), 2);
        put(common, 0, 2);
        file << "PK\3\4" << common << name << data;
        directory += "PK\1\2";
        put(directory, 20, 2);
        directory += common;
        put(directory, 0, 10);
        put(directory, at, 4);
        directory += name;
        count++;
    }

    void close() {
        uint64_t at = file.tellp();
        std::string end = "PK\5\6";
        put(end, 0, 4);
        put(end, count, 2);
        put(end, count, 2);
        put(end, directory.size(), 4);
        put(end, at, 4);
        put(end, 0, 2);
        file << directory << end;
        file.close();
        if (!file) throw std::runtime_error("the answer cannot be written");
    }
};

} // namespace npz
