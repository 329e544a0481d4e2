// A rival for rnnbench: the RNN primitives of oneDNN 2.x on the processor.
//
// Needs oneDNN's headers and library with OpenMP, such as Debian's libdnnl-dev, and a C++
// compiler: make rival-onednn builds bin/rival-onednn. rnnbench starts it;
// rivals/onednn.toml says how:
//
//     rnnbench sweep --rival rivals/onednn.toml --impl onednn,cudnnstyle
//
// Inference and training use their own primitives. Weights are brought into the formats
// that oneDNN chooses before anything is timed or, with the knob pack=1, in each run: training
// changes them. A stack is one primitive, or two where the first layer has another width.
// docs/rivals.md describes the protocol.
#include <omp.h>

#include <chrono>
#include <iostream>
#include <oneapi/dnnl/dnnl.hpp>
#include <sstream>
#include <unordered_map>

#include "npz.h"

using namespace dnnl;
using tag = memory::format_tag;
using dt = memory::data_type;
using md = memory::desc;

// Unsupported is work that oneDNN declines.
struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// text and number find a value of a message. Its keys occur once.
std::string text(const std::string &line, const std::string &key) {
    size_t at = line.find("\"" + key + "\":\"");
    if (at == std::string::npos) throw std::runtime_error("the message has no " + key);
    std::string out;
    for (at += key.size() + 4; at < line.size() && line[at] != '"'; at++) {
        if (line[at] == '\\') at++;
        out += line[at];
    }
    return out;
}

int number(const std::string &line, const std::string &key) {
    size_t at = line.find("\"" + key + "\":");
    if (at == std::string::npos) throw std::runtime_error("the message has no " + key);
    return std::stoi(line.substr(at + key.size() + 3));
}

std::string quoted(const std::string &s) {
    std::string out = "\"";
    for (char c : s) {
        if (c == '"' || c == '\\') out += '\\';
        out += c < ' ' ? ' ' : c;
    }
    return out + "\"";
}

engine cpu(engine::kind::cpu, 0);
stream queue(cpu);

void copy(memory from, memory to) {
    reorder(from, to).execute(queue, from, to);
    queue.wait();
}

// fresh is zeroed memory.
memory fresh(const md &d) {
    memory m(d, cpu);
    memset(m.get_data_handle(), 0, d.get_size());
    return m;
}

// A Point is what is computed: sizes as in the protocol.
struct Point {
    std::string cell;
    bool train, lstm, gru, peep, pack;
    dt type;
    int I, H, L, B, T;
    std::vector<int> gates; // of torch.nn, in oneDNN's order

    explicit Point(const std::string &m)
        : cell(text(m, "cell")), train(text(m, "pass") == "train"), I(number(m, "input")), H(number(m, "hidden")), L(number(m, "layers")), B(number(m, "batch")),
          T(number(m, "steps")) {
        peep = cell == "lstm-peephole";
        lstm = cell == "lstm" || peep;
        pack = number(m, "pack");
        gru = cell == "gru";
        if (lstm) gates = {0, 1, 2, 3};
        else if (gru) gates = {1, 0, 2}; // update, reset, new
        else if (cell == "rnn-tanh" || cell == "rnn-relu") gates = {0};
        else throw Unsupported("oneDNN has no " + cell);
        type = text(m, "precision") == "bf16" ? dt::bf16 : dt::f32;
    }
    int G() const { return gates.size(); }
    int biases() const { return gru ? 4 : G(); }
};

std::string named(const char *s, int layer) { return std::string(s) + "_l" + std::to_string(layer); }

// A Part is equal layers as one primitive, with all that it touches.
struct Part {
    const Point &p;
    int first, n, width; // layers from first, which read so many features
    md wl, wi, bwl, bwi, dwl, dwi, ws;
    primitive forward, backward;
    std::unordered_map<int, memory> run, back;
    std::vector<std::pair<memory, memory>> packs; // what each run brings into another format

    Part(const Point &p, int first, int n, int width) : p(p), first(first), n(n), width(width) {
        auto dir = rnn_direction::unidirectional_left2right;
        auto kind = p.train ? prop_kind::forward_training : prop_kind::forward_inference;
        md x = seq(width, p.type), y = seq(p.H, p.type), h = iter(p.type), c = iter(dt::f32);
        md wlA({n, 1, width, p.G(), p.H}, p.type, tag::any), wiA({n, 1, p.H, p.G(), p.H}, p.type, tag::any), b = bias();
        md dx = seq(width, dt::f32), dy = seq(p.H, dt::f32), dh = iter(dt::f32), none, peep = p.peep ? peephole() : none;
        md dwlA({n, 1, width, p.G(), p.H}, dt::f32, tag::any), dwiA({n, 1, p.H, p.G(), p.H}, dt::f32, tag::any);
        if (p.lstm) {
            lstm_forward::primitive_desc f({kind, dir, x, h, c, wlA, wiA, peep, b, y, h, c}, cpu);
            keep<lstm_forward>(f);
            if (p.train) {
                lstm_backward::desc d(prop_kind::backward, dir, x, h, c, wlA, wiA, peep, b, y, h, c, dx, dh, c, dwlA, dwiA, peep, b, dy, dh, c);
                keepBack<lstm_backward>(lstm_backward::primitive_desc(d, cpu, f));
            }
        } else if (p.gru) {
            lbr_gru_forward::primitive_desc f({kind, dir, x, h, wlA, wiA, b, y, h}, cpu);
            keep<lbr_gru_forward>(f);
            if (p.train) {
                lbr_gru_backward::desc d(prop_kind::backward, dir, x, h, wlA, wiA, b, y, h, dx, dh, dwlA, dwiA, b, dy, dh);
                keepBack<lbr_gru_backward>(lbr_gru_backward::primitive_desc(d, cpu, f));
            }
        } else {
            auto act = p.cell == "rnn-relu" ? algorithm::eltwise_relu : algorithm::eltwise_tanh;
            vanilla_rnn_forward::primitive_desc f({kind, act, dir, x, h, wlA, wiA, b, y, h}, cpu);
            keep<vanilla_rnn_forward>(f);
            if (p.train) {
                vanilla_rnn_backward::desc d(prop_kind::backward, act, dir, x, h, wlA, wiA, b, y, h, dx, dh, dwlA, dwiA, b, dy, dh);
                keepBack<vanilla_rnn_backward>(vanilla_rnn_backward::primitive_desc(d, cpu, f));
            }
        }
    }

    md seq(int w, dt t) const { return md({p.T, p.B, w}, t, tag::tnc); }
    md iter(dt t) const { return md({n, 1, p.B, p.H}, t, tag::ldnc); }
    md bias() const { return md({n, 1, p.biases(), p.H}, dt::f32, tag::ldgo); }
    md peephole() const { return md({n, 1, 3, p.H}, dt::f32, tag::ldgo); }

    template <class F, class D> void keep(const D &d) {
        forward = F(d);
        wl = d.weights_layer_desc(), wi = d.weights_iter_desc(), ws = d.workspace_desc();
    }
    template <class F, class D> void keepBack(const D &d) {
        backward = F(d);
        bwl = d.weights_layer_desc(), bwi = d.weights_iter_desc(), dwl = d.diff_weights_layer_desc(), dwi = d.diff_weights_iter_desc();
    }

    // plain is a matrix of weights as oneDNN spells them: layers × inputs × gates × units.
    md plain(int w) const { return md({n, 1, w, p.G(), p.H}, dt::f32, tag::ldigo); }

    memory given(const md &plain, std::vector<float> &v, const md &to) {
        memory m(to, cpu);
        copy(memory(plain, cpu, v.data()), m);
        return m;
    }

    // packed is a matrix of weights in a format that oneDNN chooses.
    memory packed(int w, std::vector<float> &v, const md &to) {
        memory m = given(plain(w), v, to);
        if (p.pack) {
            packs.emplace_back(memory(plain(w), cpu), m);
            memcpy(packs.back().first.get_data_handle(), v.data(), 4 * v.size());
        }
        return m;
    }

    std::vector<float> weights(const Arrays &a, const char *name, int w) const {
        std::vector<float> v(size_t(n) * w * p.G() * p.H);
        for (int l = 0; l < n; l++) {
            const auto &src = a.at(named(name, first + l));
            for (int i = 0; i < w; i++)
                for (int g = 0; g < p.G(); g++)
                    for (int o = 0; o < p.H; o++) v[((size_t(l) * w + i) * p.G() + g) * p.H + o] = src[(size_t(p.gates[g]) * p.H + o) * w + i];
        }
        return v;
    }

    std::vector<float> biases(const Arrays &a) const {
        std::vector<float> v;
        for (int l = 0; l < n; l++) {
            const auto &x = a.at(named("bias_ih", first + l)), &r = a.at(named("bias_hh", first + l));
            for (int g = 0; g < p.biases(); g++)
                for (int o = 0; o < p.H; o++) {
                    if (p.gru && g >= 2) v.push_back((g == 2 ? x : r)[2 * p.H + o]); // the product of the state has its own
                    else v.push_back(x[p.gates[g] * p.H + o] + r[p.gates[g] * p.H + o]);
                }
        }
        return v;
    }

    // band is the layers' rows of an L × B × H array.
    std::vector<float> band(const Arrays &a, const char *name) const {
        size_t one = size_t(p.B) * p.H;
        const auto &v = a.at(name);
        return {v.begin() + first * one, v.begin() + (first + n) * one};
    }

    // bind makes the arguments. x is what the layers read, dy the gradient of what they give.
    void bind(const Arrays &a, memory x, memory dy) {
        auto W = weights(a, "weight_ih", width), R = weights(a, "weight_hh", p.H), b = biases(a), h = band(a, "h_0");
        auto wlm = packed(width, W, wl), wim = packed(p.H, R, wi), bm = given(bias(), b, bias());
        run = {{DNNL_ARG_SRC_LAYER, x}, {DNNL_ARG_SRC_ITER, given(iter(dt::f32), h, iter(p.type))}, {DNNL_ARG_WEIGHTS_LAYER, wlm}, {DNNL_ARG_WEIGHTS_ITER, wim}, {DNNL_ARG_BIAS, bm}, {DNNL_ARG_DST_LAYER, fresh(seq(p.H, p.type))}, {DNNL_ARG_DST_ITER, fresh(iter(p.type))}};
        if (p.lstm) {
            auto c = band(a, "c_0");
            run[DNNL_ARG_SRC_ITER_C] = given(iter(dt::f32), c, iter(dt::f32));
            run[DNNL_ARG_DST_ITER_C] = fresh(iter(dt::f32));
        }
        if (p.peep) {
            std::vector<float> v;
            for (int l = 0; l < n; l++) v.insert(v.end(), a.at(named("peephole", first + l)).begin(), a.at(named("peephole", first + l)).end());
            run[DNNL_ARG_WEIGHTS_PEEPHOLE] = given(peephole(), v, peephole());
        }
        if (!p.train) return;
        run[DNNL_ARG_WORKSPACE] = fresh(ws);
        back = run;
        back[DNNL_ARG_WEIGHTS_LAYER] = packed(width, W, bwl);
        back[DNNL_ARG_WEIGHTS_ITER] = packed(p.H, R, bwi);
        back[DNNL_ARG_DIFF_SRC_LAYER] = fresh(seq(width, dt::f32));
        back[DNNL_ARG_DIFF_DST_LAYER] = dy;
        back[DNNL_ARG_DIFF_WEIGHTS_LAYER] = fresh(dwl);
        back[DNNL_ARG_DIFF_WEIGHTS_ITER] = fresh(dwi);
        back[DNNL_ARG_DIFF_BIAS] = fresh(bias());
        back[DNNL_ARG_DIFF_SRC_ITER] = fresh(iter(dt::f32));
        back[DNNL_ARG_DIFF_DST_ITER] = fresh(iter(dt::f32));
        if (p.lstm) {
            back[DNNL_ARG_DIFF_SRC_ITER_C] = fresh(iter(dt::f32));
            back[DNNL_ARG_DIFF_DST_ITER_C] = fresh(iter(dt::f32));
        }
        if (p.peep) back[DNNL_ARG_DIFF_WEIGHTS_PEEPHOLE] = fresh(peephole());
    }

    // clear zeroes the gradients that oneDNN adds to.
    void clear() {
        for (int arg : {DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_WEIGHTS_PEEPHOLE})
            if (back.count(arg)) memset(back[arg].get_data_handle(), 0, back[arg].get_desc().get_size());
    }

    // values are an argument's in single precision, in a plain format.
    std::vector<float> values(memory m, const md &plain) const {
        std::vector<float> v(plain.get_size() / 4);
        copy(m, memory(plain, cpu, v.data()));
        return v;
    }

    void weightGradients(npz::Writer &out, const char *name, int w, int arg) {
        auto v = values(back[arg], plain(w));
        for (int l = 0; l < n; l++) {
            std::vector<float> t(size_t(w) * p.G() * p.H);
            for (int i = 0; i < w; i++)
                for (int g = 0; g < p.G(); g++)
                    for (int o = 0; o < p.H; o++) t[(size_t(p.gates[g]) * p.H + o) * w + i] = v[((size_t(l) * w + i) * p.G() + g) * p.H + o];
            out.add("grad_" + named(name, first + l), {p.G() * p.H, w}, t);
        }
    }

    // gradients writes those of the layers' parameters.
    void gradients(npz::Writer &out) {
        weightGradients(out, "weight_ih", width, DNNL_ARG_DIFF_WEIGHTS_LAYER);
        weightGradients(out, "weight_hh", p.H, DNNL_ARG_DIFF_WEIGHTS_ITER);
        auto b = values(back[DNNL_ARG_DIFF_BIAS], bias());
        for (int l = 0; l < n; l++) {
            std::vector<float> x(p.G() * p.H), r(p.G() * p.H);
            const float *of = b.data() + size_t(l) * p.biases() * p.H;
            for (int g = 0; g < p.G(); g++)
                for (int o = 0; o < p.H; o++) {
                    x[p.gates[g] * p.H + o] = of[g * p.H + o];
                    r[p.gates[g] * p.H + o] = of[(p.gru && g == 2 ? 3 : g) * p.H + o];
                }
            out.add("grad_" + named("bias_ih", first + l), {p.G() * p.H}, x);
            out.add("grad_" + named("bias_hh", first + l), {p.G() * p.H}, r);
        }
        if (!p.peep) return;
        auto v = values(back[DNNL_ARG_DIFF_WEIGHTS_PEEPHOLE], peephole());
        for (int l = 0; l < n; l++) out.add("grad_" + named("peephole", first + l), {3, p.H}, {v.begin() + l * 3 * p.H, v.begin() + (l + 1) * 3 * p.H});
    }
};

// A Stack is the whole network.
struct Stack {
    Point p;
    std::vector<Part> parts;

    explicit Stack(const std::string &m) : p(m) {
        auto a = npz::read(text(m, "data"));
        if (p.L > 1 && p.I != p.H) {
            parts.emplace_back(p, 0, 1, p.I);
            parts.emplace_back(p, 1, p.L - 1, p.H);
        } else {
            parts.emplace_back(p, 0, p.L, p.I);
        }
        auto x = parts[0].given(parts[0].seq(p.I, dt::f32), a.at("input"), parts[0].seq(p.I, p.type));
        for (auto &part : parts) {
            part.bind(a, x, fresh(part.seq(p.H, dt::f32)));
            x = part.run[DNNL_ARG_DST_LAYER];
        }
        for (size_t i = 1; p.train && i < parts.size(); i++) parts[i - 1].back[DNNL_ARG_DIFF_DST_LAYER] = parts[i].back[DNNL_ARG_DIFF_SRC_LAYER];
        if (p.train) memcpy(parts.back().back[DNNL_ARG_DIFF_DST_LAYER].get_data_handle(), a.at("grad_output").data(), 4 * a.at("grad_output").size());
    }

    void run() {
        for (auto &part : parts)
            for (auto &m : part.packs) reorder(m.first, m.second).execute(queue, m.first, m.second);
        for (auto &part : parts) part.forward.execute(queue, part.run);
        for (auto part = parts.rbegin(); p.train && part != parts.rend(); part++) {
            part->clear();
            part->backward.execute(queue, part->back);
        }
        queue.wait();
    }

    void write(const std::string &path) {
        npz::Writer out(path);
        out.add("output", {p.T, p.B, p.H}, parts.back().values(parts.back().run[DNNL_ARG_DST_LAYER], parts.back().seq(p.H, dt::f32)));
        states(out, "h_n", DNNL_ARG_DST_ITER, false);
        if (p.lstm) states(out, "c_n", DNNL_ARG_DST_ITER_C, false);
        if (p.train) {
            out.add("grad_input", {p.T, p.B, p.I}, parts[0].values(parts[0].back[DNNL_ARG_DIFF_SRC_LAYER], parts[0].seq(p.I, dt::f32)));
            states(out, "grad_h_0", DNNL_ARG_DIFF_SRC_ITER, true);
            if (p.lstm) states(out, "grad_c_0", DNNL_ARG_DIFF_SRC_ITER_C, true);
            for (auto &part : parts) part.gradients(out);
        }
        out.close();
    }

    void states(npz::Writer &out, const char *name, int arg, bool back) {
        std::vector<float> all;
        for (auto &part : parts) {
            auto v = part.values((back ? part.back : part.run)[arg], part.iter(dt::f32));
            all.insert(all.end(), v.begin(), v.end());
        }
        out.add(name, {p.L, p.B, p.H}, all);
    }
};

std::string hello() {
    auto *v = dnnl_version();
    std::ostringstream s;
    s << "{\"name\":\"onednn\",\"version\":\"" << v->major << "." << v->minor << "." << v->patch << "\",\"devices\":[\"cpu\"],\"precisions\":[\"fp32\",\"bf16\"],\"knobs\":[{\"name\":\"pack\",\"values\":[0,1],\"internal\":true}]}";
    return s.str();
}

std::string answer(const std::string &m, std::unique_ptr<Stack> &stack) {
    auto is = [&](const char *verb) { return m.rfind(std::string("{\"") + verb + "\":", 0) == 0; };
    if (is("hello")) return hello();
    if (is("open")) {
        omp_set_num_threads(number(m, "threads"));
    } else if (is("prepare")) {
        stack.reset(); // two large ones may not fit
        stack = std::make_unique<Stack>(m);
    } else if (is("run")) {
        int n = number(m, "run");
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < n; i++) stack->run();
        std::ostringstream s;
        s.precision(9);
        s << "{\"wall_s\":" << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << "}";
        return s.str();
    } else if (is("read")) {
        stack->write(text(m, "read"));
    }
    return "{\"ok\":true}";
}

int main() {
    std::unique_ptr<Stack> stack;
    for (std::string m; std::getline(std::cin, m) && m.rfind("{\"close\"", 0) != 0;) {
        std::string line;
        try {
            line = answer(m, stack);
        } catch (const Unsupported &e) {
            line = "{\"unsupported\":" + quoted(e.what()) + "}";
        } catch (const dnnl::error &e) {
            line = (e.status == dnnl_unimplemented ? "{\"unsupported\":" : "{\"error\":") + quoted(std::string("oneDNN: ") + e.what()) + "}";
        } catch (const std::exception &e) {
            line = "{\"error\":" + quoted(e.what()) + "}";
        }
        std::cout << line << std::endl;
    }
}
